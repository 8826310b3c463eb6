"""The parser's own words. It asks gettext for them, in messages/zh/LC_MESSAGES/parser.mo (scripts/messages.py)."""


def N_(text: str) -> str:
    """Marks a text for the catalogue; it is looked up elsewhere."""
    return text


PARSER_WORDS = (
    N_("Arguments"),
    N_("Options"),
    N_("Commands"),
    N_("Error"),
    N_("Aborted."),
    N_("(deprecated) "),
    N_("[default: {}]"),
    N_("[env var: {}]"),
    N_("[required]"),
    N_("default: {default}"),
    N_("required"),
    N_("(dynamic)"),
    N_("Usage:"),
)
