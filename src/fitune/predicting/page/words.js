"use strict";
// Every word of the page, in both languages; a test holds the two lists to the same keys.
const WORDS = {
  en: {
    other: "中文", skip: "Skip to the results", api: "API", ask: "Text", text: "One text, or one a line",
    textPair: "Second text (compared with the first)",
    hint: "Ctrl+Enter sends. You can also drop a file here: .txt with one text a line, or .jsonl / .json with a text field.",
    token: "Token (printed when the service started)", send: "Predict", open: "Open a file", clear: "Clear",
    examples: "Examples from the development set", results: "Result", nothing: "Nothing yet.", working: "Working …",
    done: "{texts} texts in {seconds} s", none: "No entity found.", download: "Download corrected examples",
    downloadHint: "JSONL that fitune train reads", remove: "Remove", choose: "Label of the selected characters",
    howNer: "To correct: select characters and choose a label; click an entity to change or remove it. " +
      "Keyboard: Tab to a text, arrows move, Shift+arrows select, Enter opens the labels, Delete removes.",
    howClasses: "To correct: tick the right class.", corrected: "corrected", right: "Right class",
    needToken: "The service asks for its token.", tooLarge: "Too much for one request: {detail}",
    busy: "The service is busy; try again in {seconds} s.", refused: "The service refused: {detail}",
    failed: "The service cannot be reached: {detail}", badFile: "{name} is neither UTF-8 nor GB18030 text.",
    noTexts: "No text found in {name}.", offsets: "characters {start} to {end}",
  },
  zh: {
    other: "English", skip: "跳到结果", api: "接口", ask: "文本", text: "一条文本，或每行一条",
    textPair: "第二条文本（与第一条比较）",
    hint: "Ctrl+Enter 发送。也可以把文件拖到这里：每行一条的 .txt，或带 text 字段的 .jsonl / .json。",
    token: "令牌（服务启动时打印）", send: "预测", open: "打开文件", clear: "清空",
    examples: "开发集中的例子", results: "结果", nothing: "还没有结果。", working: "正在计算……",
    done: "{texts} 条文本，用时 {seconds} 秒", none: "没有找到实体。", download: "下载修正后的样本",
    downloadHint: "JSONL 格式，fitune train 可直接读取", remove: "删除", choose: "所选字符的标签",
    howNer: "修正方法：选中字符后选择标签；点击实体可以更改或删除。" +
      "键盘：Tab 进入文本，方向键移动，Shift+方向键选择，Enter 打开标签，Delete 删除。",
    howClasses: "修正方法：勾选正确的类别。", corrected: "已修正", right: "正确的类别",
    needToken: "服务要求输入令牌。", tooLarge: "一次请求太大：{detail}",
    busy: "服务正忙，请 {seconds} 秒后再试。", refused: "服务拒绝了请求：{detail}",
    failed: "无法连接服务：{detail}", badFile: "{name} 既不是 UTF-8 也不是 GB18030 文本。",
    noTexts: "{name} 中没有找到文本。", offsets: "第 {start} 到 {end} 个字符",
  },
};
let language = localStorage.getItem("language") || (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");
function word(key, values = {}) {
  return WORDS[language][key].replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
}
function showWords() {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = word(element.dataset.word);
  document.getElementById("language").textContent = word("other");
}
