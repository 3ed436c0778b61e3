"""The report in a real browser: it works by pointer and keyboard, is readable, and fits a phone."""

import shutil
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from abcgbm.report import write_report
from models import noisy_data, small

pytest.importorskip("jinja2")
webdriver = pytest.importorskip("selenium.webdriver")
BROWSER, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
if BROWSER is None or DRIVER is None:
    pytest.skip("needs chromium and chromedriver", allow_module_level=True)

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

SECTIONS = [
    *("summary", "iterations", "bases", "confusion", "classes", "calibration", "importances"),
    *("shapley", "hardest", "parameters", "reproduce"),
]
THEMES = ("light", "dark")
PHONE, DESK = 360, 1280
X, Y = noisy_data(n_rows=500, n_classes=5)
LABELS = np.array(["a", "b", "c", "d", "a label that is as long as labels of people are"])[Y]
# The background of an element is that of its ancestors, laid over each other; a number in a square
# stands on the square. Contrast is that of WCAG 2.
POOR_CONTRAST = """
const context = Object.assign(document.createElement("canvas"), {width: 1, height: 1})
  .getContext("2d", {willReadFrequently: true});
function over(colours) {
  context.clearRect(0, 0, 1, 1);
  for (const [colour, alpha] of colours) {
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
  }
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
function luminance(rgb) {
  const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function grounds(element) {
  const found = [];
  for (let e = element; e; e = e.parentElement) found.unshift([getComputedStyle(e).backgroundColor, 1]);
  const svg = element.closest(".matrix svg");
  if (svg && element.closest(".cells")) {
    const square = element.parentElement.querySelector("rect");
    found.push([getComputedStyle(svg.querySelector(".ground")).fill, 1]);
    found.push([getComputedStyle(square).fill, Number(getComputedStyle(square).fillOpacity)]);
  }
  return found;
}
const poor = [];
let n = 0;
for (const element of document.querySelectorAll("body *")) {
  const hasText = [...element.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
  const isSpoken = element.closest("script, style, svg title, svg desc, [hidden]");
  if (!hasText || isSpoken) continue;
  const style = getComputedStyle(element);
  const under = grounds(element);
  const ink = element.closest("svg") ? style.fill : style.color;
  const [a, b] = [over([...under, [ink, 1]]), over(under)].map(luminance);
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  n += 1;
  if (contrast < 4.5) poor.push([element.tagName, element.textContent.slice(0, 40), contrast]);
}
return [n, poor];
"""


def start_browser(*, scripts=True):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    # A page that is still scrolling has moved when the click arrives.
    options.add_argument("--force-prefers-reduced-motion")
    if not scripts:
        wanted = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", wanted)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def prefer(browser, theme):
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def wait_for_next_frame(browser):
    """Wait for the next frame, in which the page receives a changed preference."""
    browser.execute_async_script("requestAnimationFrame(arguments[0])")


def resize(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The report of a model with few enough classes for numbers in the confusion matrix."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    model = small("abc-mart").fit(X[:300], LABELS[:300])
    write_report(model, X[300:], LABELS[300:], path, command="abcgbm report " + "x" * 100)
    return path


@pytest.fixture(scope="module")
def browser():
    with start_browser() as browser:
        yield browser


@pytest.fixture
def page(browser, path):
    prefer(browser, "light")
    resize(browser, DESK)
    browser.get(path.as_uri())
    return browser


def find(page, selector):
    return page.find_element(By.CSS_SELECTOR, selector)


def column(table, number):
    cells = table.find_elements(By.CSS_SELECTOR, f"tbody tr > :nth-child({number})")
    return [cell.text for cell in cells]


def paper(page):
    return page.execute_script("return getComputedStyle(document.body).backgroundColor")


def hover(page, element, x, y):
    """Move the pointer to a position relative to an element."""
    page.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    box = page.execute_script("return arguments[0].getBoundingClientRect().toJSON()", element)
    place = {"type": "mouseMoved", "x": box["left"] + x, "y": box["top"] + y}
    page.execute_cdp_cmd("Input.dispatchMouseEvent", place)


# ------------------------------------------------------------------------------------------ the page


def test_page_opens_with_all_sections_and_an_empty_console(page):
    sections = page.find_elements(By.CSS_SELECTOR, "main > section")
    assert [section.get_attribute("id") for section in sections] == SECTIONS
    links = page.find_elements(By.CSS_SELECTOR, "nav a")
    assert [link.get_attribute("hash") for link in links] == [f"#{name}" for name in SECTIONS]
    assert all(section.size["height"] > 50 for section in sections)
    assert page.get_log("browser") == []


def test_page_requests_no_other_file(page, path):
    asked = page.execute_script(
        "return performance.getEntriesByType('resource').map((e) => e.name)"
    )
    assert [name for name in asked if not name.startswith("data:")] == []
    assert path.as_uri() == page.current_url


ODD = {
    "text": ["[red]", "</script><script>alert(1)</script>", "\U0001f98a fox", "Wort" * 80, "None"],
    "hardly text": ["nan", "null", "", "  ", "&amp;"],
    "integers": [-1, 0, 3, 7, 10**12],
    "floats": [-1.0, 0.0, 2.0, 5.0, 1e6],
    "truth values": [False, True, False, True, False],
    "dates": [date(2020, 1, day) for day in range(1, 6)],
}


@pytest.mark.parametrize("kind", ODD)
def test_unusual_labels_and_columns_are_shown_literally(browser, tmp_path, kind):
    labels = np.array(ODD[kind], dtype=object)[Y]
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "money": [Decimal(round(v)) / 4 for v in 100 * np.nan_to_num(X[:, 0])],
            "<b>&\"'": X[:, 1],
            "colour": rng.choice([*ODD["text"], None], len(X)),
        }
    )
    path = tmp_path / "odd.html"
    model = small("mart").fit(table[:300], labels[:300])
    write_report(model, table[300:], labels[300:], path, title="</title>[red]")
    resize(browser, PHONE)
    browser.get(path.as_uri())
    cells = browser.execute_script(
        "return [...document.querySelectorAll('#classes tbody th')].map((e) => e.textContent)"
    )
    assert cells == [str(label) if str(label).strip() else repr(label) for label in model.classes_]
    assert browser.title == "</title>[red]"
    assert browser.get_log("browser") == []
    widest = browser.execute_script(
        "return Math.max(...[...document.querySelectorAll('td, th')].map((e) => e.clientWidth))"
    )
    assert widest < 500


def test_missing_values_are_labelled(browser, tmp_path):
    is_missing = np.arange(len(X)) % 2 == 0
    table = pd.DataFrame({"c": np.where(is_missing, None, "level"), "x": X[:, 0]})
    labels = np.where(is_missing, "none", "some")
    model = small("mart").fit(table, labels)
    write_report(model, table, np.roll(labels, 1), tmp_path / "report.html")
    browser.get((tmp_path / "report.html").as_uri())
    reasons = {span.text for span in browser.find_elements(By.CSS_SELECTOR, ".reasons span")}
    assert any(reason.startswith("c = missing (") for reason in reasons)
    assert not any("None" in reason for reason in reasons)


def test_headings_skip_no_level(page):
    headings = page.find_elements(By.CSS_SELECTOR, "h1, h2, h3, h4, h5, h6")
    levels = [int(heading.tag_name[1]) for heading in headings]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert max(np.diff(levels)) == 1


def test_names_of_regions_and_drawings_are_given_and_ids_are_unique(page):
    ids = page.execute_script("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len({*ids})
    named = page.execute_script(
        "return [...document.querySelectorAll('section, [role=region], [role=img]')].map((e) =>"
        " e.getAttribute('aria-label') ?? (e.getAttribute('aria-labelledby') ?? '').split(' ')"
        ".map((id) => document.getElementById(id)?.textContent ?? '').join(' '))"
    )
    assert len(named) > len(SECTIONS)
    assert all(name.strip() for name in named)


@pytest.mark.parametrize("width", [PHONE, 768, DESK])
def test_page_is_no_wider_than_the_screen(page, width):
    resize(page, width)
    page.execute_script("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_curve_labels_are_not_clipped_on_a_phone(page):
    resize(page, PHONE)
    cut = page.execute_script(
        "return [...document.querySelectorAll('.chart svg text, .swarm svg text, .reliability svg text')]"
        ".filter((text) => { const [a, b] = [text, text.ownerSVGElement].map((e) => e.getBoundingClientRect());"
        " return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 1; })"
        ".map((text) => text.textContent)"
    )
    assert cut == []


# -------------------------------------------------------------------------------------------- themes


def test_page_follows_the_system_theme_until_the_button_changes_it(page):
    seen = {}
    for theme in THEMES:
        prefer(page, theme)
        seen[theme] = paper(page)
    assert seen["light"] != seen["dark"]
    wait_for_next_frame(page)
    button = find(page, "#theme")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert (paper(page), button.get_attribute("aria-pressed")) == (seen["light"], "false")
    button.send_keys(Keys.ENTER)
    assert (paper(page), button.get_attribute("aria-pressed")) == (seen["dark"], "true")
    prefer(page, "light")
    assert paper(page) == seen["dark"]


def test_page_without_scripts_follows_the_system_theme(path):
    with start_browser(scripts=False) as browser:
        browser.get(path.as_uri())
        seen = []
        for theme in THEMES:
            prefer(browser, theme)
            seen.append(find(browser, "body").value_of_css_property("background-color"))
        assert seen[0] != seen[1]
        assert not find(browser, "#theme").is_displayed()
        assert find(browser, "#class-table tbody tr").is_displayed()


@pytest.mark.parametrize("theme", THEMES)
def test_text_has_sufficient_contrast(page, theme):
    prefer(page, theme)
    n_texts, poor = page.execute_script(POOR_CONTRAST)
    assert n_texts > 200
    assert poor == []


# -------------------------------------------------------------------------------- tables and squares


def test_clicks_on_a_heading_sort_the_table_in_both_directions(page):
    table = find(page, "#class-table")
    before = column(table, 1)
    heading = find(page, "#class-table thead th:nth-child(3)")
    heading.find_element(By.TAG_NAME, "button").click()
    recalls = [float(text) for text in column(table, 3)]
    assert recalls == sorted(recalls, reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    heading.find_element(By.TAG_NAME, "button").click()
    assert [float(text) for text in column(table, 3)] == sorted(recalls)
    assert heading.get_attribute("aria-sort") == "ascending"
    assert sorted(column(table, 1)) == sorted(before)


def test_table_is_sortable_by_keyboard_with_aria_sort(page):
    find(page, "#class-table th:nth-child(5) button").send_keys(Keys.ENTER)
    find(page, "#class-table th:nth-child(1) button").send_keys(Keys.SPACE)
    names = column(find(page, "#class-table"), 1)
    assert names == sorted(names)
    sorted_by = page.find_elements(By.CSS_SELECTOR, "#class-table [aria-sort]")
    assert [(heading.text[:5], heading.get_attribute("aria-sort")) for heading in sorted_by] == [
        ("Class", "ascending")
    ]


def place_of(svg, row, number):
    size, left, top = (float(svg.get_attribute(f"data-{n}")) for n in ("size", "left", "top"))
    return left + size * (number + 0.5), top + size * (row + 0.5)


def test_pointer_and_keys_read_the_confusion_matrix(page):
    svg, readout = (
        find(page, "[data-matrix=confusion] svg"),
        find(page, "[data-matrix=confusion] .readout"),
    )
    hover(page, svg, *place_of(svg, 1, 1))
    assert readout.text.startswith("a label that")  # names are sorted: this one is the second
    hover(page, svg, *place_of(svg, 0, 2))
    assert readout.text.startswith("a → b: ")
    page.execute_script("arguments[0].focus()", svg)
    svg.send_keys(
        Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT
    )  # the last one cannot move further
    assert readout.text.startswith("a → a: ")
    assert " rows (" in readout.text
    assert find(page, "[data-matrix=confusion] .cursor").get_attribute("visibility") == "visible"


def test_focus_reads_the_first_cell(page):
    svg = find(page, "[data-matrix=confusion] svg")
    page.execute_script("arguments[0].focus()", svg)
    assert find(page, "[data-matrix=confusion] .readout").text.startswith("a → a: ")


def test_confusion_matrix_is_sortable_by_errors(page):
    support, recall = (
        dict(
            zip(
                column(find(page, "#class-table"), 1),
                column(find(page, "#class-table"), at),
                strict=True,
            )
        )
        for at in (5, 3)
    )
    errors = {name: int(n) - round(int(n) * float(recall[name])) for name, n in support.items()}
    find(page, "[data-sorts=confusion] [value=errors]").click()
    svg = find(page, "[data-matrix=confusion] svg")
    page.execute_script("arguments[0].focus()", svg)
    worst, _, _ = find(page, "[data-matrix=confusion] .readout").text.partition(" → ")
    assert errors[worst] == max(errors.values())


def test_pointer_and_keys_read_the_curves(page):
    svg, readout = find(page, "[data-chart=loss] svg"), find(page, "[data-chart=loss] .readout")
    hover(page, svg, svg.rect["width"] - 2, 50)
    assert readout.text.startswith("iteration 8: training loss ")
    page.execute_script("arguments[0].focus()", svg)
    svg.send_keys(Keys.ARROW_LEFT)
    assert readout.text.startswith("iteration 7: training loss ")
    assert "test loss " in readout.text
