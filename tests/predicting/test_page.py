"""The page in a real browser: both languages, pointer and keyboard, phone and desk; no request leaves the machine."""

import json

import pytest

from fitune.predicting.service import create_app
from tests.predicting.conftest import CapitalFinder, LengthJudge, running


def count(page, selector, number):
    """Wait until the page has that many (its policy forbids the script evaluation of wait_for_function)."""
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_have_count(number)


@pytest.fixture(scope="module")
def ner_address():
    with running(create_app(CapitalFinder())) as address:
        yield address


@pytest.fixture(scope="module")
def class_address():
    with running(create_app(LengthJudge())) as address:
        yield address


@pytest.fixture
def visit(chromium):
    """Opens a page in a fresh profile and, at the end, checks that it asked nobody but the service."""
    opened = []

    def open_page(address, *, locale="en-US", **options):
        context = chromium.new_context(locale=locale, accept_downloads=True, **options)
        page = context.new_page()
        asked, errors = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" and "429" not in m.text else None)
        page.goto(address)
        opened.append((context, address, asked, errors))
        return page

    yield open_page
    for context, address, asked, errors in opened:
        context.close()
        assert asked
        assert all(url.startswith((address, "data:", "blob:")) for url in asked), asked
        assert not errors, errors


@pytest.mark.parametrize(
    ("locale", "button", "heading", "remove"),
    [("en-US", "Predict", "Result", "Remove"), ("zh-CN", "预测", "结果", "删除")],
)
def test_type_see_correct_and_download(visit, ner_address, tmp_path, locale, button, heading, remove):
    page = visit(ner_address, locale=locale)
    page.get_by_label("One text, or one a line" if locale == "en-US" else "一条文本，或每行一条").fill(
        "😀甲A乙\n第二行B"
    )
    page.get_by_role("button", name=button, exact=True).click()
    page.get_by_role("heading", name=heading, exact=True).wait_for()
    marks = page.locator("mark")
    marks.nth(1).wait_for()
    assert marks.count() == 2
    # Change the first entity to another label, remove the second.
    marks.first.click()
    page.get_by_role("menuitem", name="OTHER").click()
    assert "OTHER" in page.locator("mark").first.inner_text()
    page.locator("mark").nth(1).click()
    page.get_by_role("menuitem", name=remove).click()
    assert page.locator("mark").count() == 1
    with page.expect_download() as download:
        page.locator("#download").click()
    saved = tmp_path / "corrected.jsonl"
    download.value.save_as(saved)
    rows = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
    assert rows == [
        {"text": "😀甲A乙", "entities": [{"start": 2, "end": 3, "label": "OTHER"}]},
        {"text": "第二行B", "entities": []},
    ]
    from fitune.data import read

    back = read(saved)
    assert [e.text for e in back.examples] == ["😀甲A乙", "第二行B"]
    assert [(s.start, s.end, s.label) for s in back.examples[0].spans] == [(2, 3, "OTHER")]


def test_correct_by_keyboard_alone(visit, ner_address):
    page = visit(ner_address)
    page.locator("#text").fill("😀甲乙丙")
    page.locator("#text").press("Control+Enter")
    text = page.locator(".text[data-index='0']")
    text.wait_for()
    text.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # the second character
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the first label has the focus
    mark = page.locator("mark")
    mark.wait_for()
    assert mark.locator("[data-start]").inner_text() == "甲乙"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Delete")
    count(page, "mark", 0)


def test_select_with_the_mouse(visit, ner_address):
    page = visit(ner_address)
    page.locator("#text").fill("选中这些字符")
    page.locator("#send").click()
    text = page.locator(".text[data-index='0'] [data-start]")
    text.wait_for()
    box = text.bounding_box()
    middle = box["y"] + box["height"] / 2
    width = box["width"] / 6
    page.mouse.move(box["x"] + width * 2 + 1, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + width * 4, middle, steps=5)
    page.mouse.up()
    page.get_by_role("menuitem", name="CAP").click()
    assert page.locator("mark [data-start]").inner_text() == "这些"


def test_example_file_and_language(visit, ner_address, tmp_path):
    page = visit(ner_address)
    page.get_by_role("button", name="例子A和").click()
    page.locator("mark").first.wait_for()
    assert page.locator("mark").count() == 2
    file = tmp_path / "gb.txt"
    file.write_bytes("国标C\n编码D".encode("gb18030"))
    page.locator("#file").set_input_files(file)
    count(page, "#cards > li", 2)
    assert page.locator("mark").count() == 2
    page.locator("#language").click()
    assert page.locator("#send").inner_text() == "预测"
    assert page.evaluate("document.documentElement.lang") == "zh-CN"


def test_classes_are_bars_and_can_be_corrected(visit, class_address, tmp_path):
    page = visit(class_address, locale="zh-CN")
    page.locator("#text").fill("短")
    page.locator("#send").click()
    page.locator("td.bar").first.wait_for()
    assert "90.0 %" in page.locator("table").inner_text()
    page.get_by_role("radio", name="long").check()
    with page.expect_download() as download:
        page.locator("#download").click()
    saved = tmp_path / "corrected.jsonl"
    download.value.save_as(saved)
    assert json.loads(saved.read_text(encoding="utf-8")) == {"text": "短", "label": "long"}


def test_a_refusal_is_shown_not_lost(visit, ner_address):
    page = visit(ner_address)
    page.route("**/predict", lambda route: route.fulfill(status=429, headers={"Retry-After": "7"}, body="{}"))
    page.locator("#text").fill("B")
    page.locator("#send").click()
    page.locator("#problem").wait_for()
    assert "7 s" in page.locator("#problem").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_a_phone(visit, ner_address, scheme):
    page = visit(ner_address, viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True)
    page.locator("#text").fill("手机上的文本A" * 20)
    page.locator("#send").click()
    page.locator("mark").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("mark").first.tap()
    menu = page.locator("#menu").bounding_box()
    assert menu["x"] >= 0
    assert menu["x"] + menu["width"] <= 360
