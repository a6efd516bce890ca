"""The web page in a real browser, against a real server: classify, browse, compare, and what holds for every view."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from page_steps import HOSTILE, PARCEL, classify, expect, item, start_batch

pytestmark = pytest.mark.slow

VIEWS = ("classify", "browse", "batch", "compare", "review", "evaluate")
LATE = "Orders & delivery > Delivery > Late or lost parcel"


def slide(page, value):
    page.locator("#certainty").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", value
    )


def has_no_sideways_scroll(page):
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


# ---- classify ---------------------------------------------------------------------------------------------------------


def test_a_text_opens_its_branch_as_soon_as_typing_stops(logged):
    page = logged()
    page.fill("#text", PARCEL)
    expect(item(page, LATE)).to_be_visible()
    expect(item(page, "Orders & delivery")).to_have_attribute("aria-expanded", "true")
    expect(item(page, LATE).locator(".number")).to_have_text(re.compile(r"\d+%"))
    expect(page.locator("#headline .headline-label")).to_have_text(re.compile(r"Orders & delivery.*Late or lost parcel +\d+%"))
    tops = [page.locator(each).bounding_box()["y"] for each in ("#headline", "#answer")]
    assert tops == sorted(tops)  # the headline comes first
    beside = page.get_by_role("group", name="Is this prediction right?").bounding_box()
    assert abs(beside["y"] - tops[0]) < page.locator("#headline").bounding_box()["height"]


def test_a_step_shows_its_rival_its_words_and_where_they_stand(logged):
    page = logged()
    classify(page)
    item(page, "Orders & delivery").locator("> .row").click()
    expect(page.locator("#why-title")).to_have_text("Why Orders & delivery?")
    expect(page.locator('#why-steps [data-step="0"]')).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#why .words li.for").first).to_contain_text("+")
    expect(page.locator("#marked mark.for").first).to_be_visible()
    assert page.locator("#marked .marked").inner_text() == PARCEL
    page.click('#why-steps [data-step="whole"]')
    expect(page.locator("#why .said")).to_contain_text("best rival overall")


def test_the_slider_says_where_the_answer_stops_without_asking_again(logged):
    page = logged()
    classify(page)
    page.wait_for_load_state("networkidle")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    slide(page, 100)
    expect(page.locator("#certainty-sentence")).to_contain_text("there would be no label")
    expect(item(page, LATE)).to_have_class(re.compile("beyond"))
    slide(page, 1)
    expect(page.locator("#certainty-sentence")).to_contain_text("goes all the way")
    expect(item(page, LATE)).not_to_have_class(re.compile("beyond"))
    assert asked == []


def test_the_same_slider_shows_where_the_answer_is_safe(logged):
    page = logged()
    classify(page)
    slide(page, 40)
    page.check("#by-guarantee")
    expect(page.locator("#certainty-value")).to_have_text("any")
    slide(page, 1)
    expect(page.locator("#certainty-value")).to_have_text("≥ 50%")
    expect(page.locator("#certainty-sentence")).to_contain_text("Late or lost parcel")
    expect(item(page, LATE)).to_have_class(re.compile("guaranteed"))
    slide(page, 12)
    expect(page.locator("#certainty-sentence")).to_contain_text("With at least 99% right")
    slide(page, 0)
    expect(page.locator("#certainty-sentence")).to_contain_text("Move the slider")
    expect(item(page, LATE)).not_to_have_class(re.compile("guaranteed"))
    page.check("#by-probability")  # each kind keeps its place
    expect(page.locator("#certainty-value")).to_have_text("≥ 40%")


def test_further_to_the_right_is_always_more_certain(logged):
    page = logged()
    classify(page)
    for kind in ("#by-probability", "#by-guarantee"):
        page.check(kind)
        most = int(page.locator("#certainty").get_attribute("max"))
        shown = []
        for place in range(1, most + 1, max(1, most // 10)):
            slide(page, place)
            shown.append(float(page.locator("#certainty-value").inner_text().strip("≥ %")))
        assert len(shown) >= 10
        assert shown == sorted(set(shown))
    page.wait_for_load_state("networkidle")


def test_why_not_explains_the_label_that_was_expected(logged):
    page = logged()
    classify(page)
    page.fill("#why-not", "bluetooth")
    page.locator("#why [role=option]").first.click()
    expect(page.locator("#why-title")).to_have_text("Why not Bluetooth pairing?")
    expect(item(page, "TV, audio & smart home > Audio > Bluetooth pairing")).to_be_visible()
    page.click("#why-back")
    expect(page.locator("#why-title")).to_contain_text("Why ")
    expect(page.locator("#why-back")).to_have_count(0)


def test_an_old_answer_never_covers_a_newer_one(logged):
    held = []

    def hold(route):
        if "old text" in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    page = logged(before=lambda page: page.route(re.compile("/v1/(classify|explain)"), hold))
    page.fill("#text", "an old text about invoices")
    page.press("#text", "Control+Enter")
    page.wait_for_timeout(200)
    classify(page)
    for route in held:
        route.continue_()
    page.wait_for_timeout(300)
    assert len(held) == 2
    assert page.locator("#marked .marked").inner_text() == PARCEL


def test_a_lost_connection_is_said_and_can_be_tried_again(logged):
    page = logged(expected="Failed to load resource")
    page.route("**/v1/classify", lambda route: route.abort())
    page.fill("#text", PARCEL)
    expect(page.locator("#classify-problem")).to_contain_text("The server does not answer")
    page.unroute("**/v1/classify")
    page.click("[data-action=retry]")
    expect(item(page, LATE)).to_be_visible()


def test_what_people_wrote_is_shown_as_text_and_never_run(logged):
    def poisoned(value, key=""):
        if isinstance(value, dict):
            return {name: poisoned(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [poisoned(inner, key) for inner in value]
        return HOSTILE if key in ("title", "path", "rival") and value == "Late or lost parcel" else value

    def poison(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=json.dumps(poisoned(answer.json())))

    page = logged(before=lambda page: page.route(re.compile("/v1/(classify|explain|taxonomy)"), poison))
    page.fill("#text", f"{PARCEL} {HOSTILE}")
    expect(page.locator("#answer")).to_contain_text("<script>")
    assert HOSTILE in page.locator("#marked .marked").inner_text()
    page.click("[data-view=browse]")
    page.fill("#browse-search", "lost parcel")
    page.locator("[role=option]:visible").first.click()
    expect(page.locator("#node-details")).to_contain_text("<img src=x")
    assert page.locator("main img[src=x], main script").count() == 0
    assert "taken over" not in page.title()


# ---- browse and compare -----------------------------------------------------------------------------------------------


def test_a_mistyped_label_gets_a_suggestion(logged):
    page = logged("browse")
    page.fill("#browse-search", "bluetoth paring")
    page.click("[data-action=did-you-mean]")
    expect(page.locator("#browse-search")).to_have_value("bluetooth pairing")
    expect(page.locator("[role=option]:visible")).to_have_count(1)
    page.fill("#browse-search", "qqqq")
    expect(page.locator(".options-note:visible")).to_contain_text("No label has all these words in its path.")


def test_browsing_opens_branches_on_demand(logged):
    page = logged("browse")
    expect(page.locator("#taxonomy > li")).to_have_count(6)
    item(page, "Orders & delivery", "#taxonomy").locator("> .row").click()
    expect(item(page, "Orders & delivery > Delivery", "#taxonomy")).to_be_visible()
    expect(page.locator("#node-title")).to_have_text("Orders & delivery")
    expect(page.locator("#node-details")).to_contain_text("Precision")


def test_a_search_opens_the_tree_at_the_place(logged):
    page = logged("browse")
    page.fill("#browse-search", "bluetooth")
    expect(page.locator("[role=option]:visible")).to_have_count(1)
    page.press("#browse-search", "ArrowDown")
    page.press("#browse-search", "Enter")
    found = item(page, "TV, audio & smart home > Audio > Bluetooth pairing", "#taxonomy")
    expect(found).to_have_attribute("aria-selected", "true")
    expect(found).to_be_focused()


def test_a_wide_branch_comes_in_parts(logged):
    def wide(route):
        query = parse_qs(urlsplit(route.request.url).query)
        start = int(query.get("offset", ["0"])[0])
        names = [f"node {i}" for i in range(450)][start : start + 200]
        blank = {"depth": 0, "children": 0, "leaves": 1, "documents": None, "quality": None}
        children = [{"name": name, "title": name, "label": name, "path": [name], **blank} for name in names]
        route.fulfill(json={"model": "support", "node": None, "above": [], "children": children, "total": 450})

    page = logged("browse", before=lambda page: page.route(re.compile(r"/v1/taxonomy\?"), wide))
    expect(page.locator("#taxonomy > li")).to_have_count(201)
    page.click("#taxonomy [data-more]")
    expect(page.locator("#taxonomy > li")).to_have_count(401)
    expect(item(page, "node 200", "#taxonomy")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.locator("#taxonomy > li")).to_have_count(450)


def test_two_models_are_seen_side_by_side(logged):
    page = logged("compare")
    page.fill("#compare-text", "the tv has no picture any more, only sound")
    expect(page.locator("#left-answer h2")).to_contain_text("support")
    expect(page.locator("#right-answer h2")).to_contain_text("support-nb")
    expect(page.locator("#left-answer .ladder li").first).to_contain_text("%")
    expect(page.locator("#right-answer .words li").first).to_be_visible()
    expect(page.locator("#parting p")).to_have_text(re.compile("^(Both|They differ)"))


# ---- for everybody ----------------------------------------------------------------------------------------------------


# words of titles whose letters are not all on one line
BROKEN_WORDS = """() => {
    const broken = [];
    for (const part of document.querySelectorAll('main bdi, main .title, nav a, button')) {
        for (const node of part.childNodes) {
            if (node.nodeType !== 3 || !part.checkVisibility()) continue;
            for (const { index, 0: word } of node.data.matchAll(/\\S+/g)) {
                const range = document.createRange();
                range.setStart(node, index);
                range.setEnd(node, index + word.length);
                const tops = [...range.getClientRects()].map((box) => Math.round(box.top));
                if (new Set(tops).size > 1 && !/[-\u2010\u2013/]/.test(word)) broken.push(word);
            }
        }
    }
    return broken;
}"""


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_every_tab_can_be_reached_and_no_word_is_broken(logged, table, width):
    page = logged()
    page.set_viewport_size({"width": width, "height": 844})
    classify(page, f"{PARCEL} {'long' * 60}")
    for view in VIEWS:
        link = page.locator(f"[data-view={view}]")
        box = link.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
        link.click()
        if view == "batch":
            start_batch(page, table)
            expect(page.locator("#batch-status")).to_contain_text("Done")
        if view == "compare":
            page.fill("#compare-text", "the voucher was not taken off the invoice")
            expect(page.locator("#right-answer .ladder li").first).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert has_no_sideways_scroll(page), view
        assert page.evaluate(BROKEN_WORDS) == [], view


def test_on_a_phone_the_label_of_a_row_is_below_its_text(logged, table):
    page = logged("batch")
    page.set_viewport_size({"width": 390, "height": 844})
    start_batch(page, table)
    text, label = (page.locator(f"#batch-rows tbody tr:nth-child(3) td:nth-child({i})").bounding_box() for i in (2, 3))
    assert label["y"] >= text["y"] + text["height"]
    assert label["x"] + label["width"] <= 390
    expect(page.get_by_role("cell").first).to_be_visible()  # and it is a table still


def test_the_keyboard_alone_is_enough(logged):
    page = logged()
    expect(page.locator("#views a")).to_have_count(6)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "text":
            break
    page.keyboard.type(PARCEL)
    page.keyboard.press("Control+Enter")
    expect(item(page, LATE)).to_be_visible()
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "treeitem":
            break
    page.keyboard.press("Home")
    expect(page.locator("#answer > li").first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#answer > li").first).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator('#why-steps [data-step="1"]')).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_every_view_shows_itself_in_light_and_dark(logged, look, tmp_path):
    page = logged(color_scheme=look)
    classify(page)
    for view in VIEWS:
        page.click(f"[data-view={view}]")
        page.wait_for_load_state("networkidle")
        assert page.locator("h1:visible").count() == 1
        page.screenshot(path=tmp_path / f"{view}-{look}.png", full_page=True)
    assert len(list(tmp_path.glob("*.png"))) == len(VIEWS)
    other = {"light": "dark", "dark": "light"}[look]
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.select_option("#theme", other)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_a_server_with_keys_asks_for_one(logged):
    def intercept(route):
        if route.request.headers.get("authorization") == "Bearer right-key":
            route.continue_()
        else:
            refused = {"error": {"code": "key", "message": "the key is not known."}}
            route.fulfill(status=401, content_type="application/json", body=json.dumps(refused))

    page = logged(expected="401", before=lambda page: page.route("**/v1/**", intercept))
    page.fill("#key", "wrong-key")
    page.click("#key-send")
    expect(page.locator("#key-dialog")).to_contain_text("The key is not known.")
    page.fill("#key", "right-key")
    page.press("#key", "Enter")
    classify(page)
    assert page.evaluate("JSON.stringify(localStorage)").count("right-key") == 0
