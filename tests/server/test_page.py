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


def slide(page, value, slider="#confidence"):
    page.locator(slider).evaluate(
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
    expect(page.locator("#stop-sentence")).to_contain_text("Late or lost parcel")


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
    expect(page.locator("#stop-sentence")).to_contain_text("there would be no label")
    expect(item(page, LATE)).to_have_class(re.compile("beyond"))
    slide(page, 1)
    expect(page.locator("#stop-sentence")).to_contain_text("goes all the way")
    expect(item(page, LATE)).not_to_have_class(re.compile("beyond"))
    assert asked == []


def test_the_slider_of_risk_shows_where_the_answer_is_safe(logged):
    page = logged()
    classify(page)
    expect(page.locator("#risk-value")).to_have_text("any")
    slide(page, 1, "#risk")
    expect(page.locator("#risk-value")).to_have_text("50%")
    expect(page.locator("#risk-sentence")).to_contain_text("Late or lost parcel")
    expect(item(page, LATE)).to_have_class(re.compile("guaranteed"))
    slide(page, 12, "#risk")
    expect(page.locator("#risk-sentence")).to_contain_text("With a risk of 1%")
    slide(page, 0, "#risk")
    expect(page.locator("#risk-sentence")).to_have_text("")
    expect(item(page, LATE)).not_to_have_class(re.compile("guaranteed"))


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


def test_a_phone_never_scrolls_sideways(logged, table):
    page = logged()
    page.set_viewport_size({"width": 360, "height": 740})
    classify(page, f"{PARCEL} {'long' * 60}")
    assert has_no_sideways_scroll(page)
    for view in VIEWS[1:]:
        page.evaluate("view => { location.hash = view; }", view)
        if view == "batch":
            start_batch(page, table)
            expect(page.locator("#batch-status")).to_contain_text("Done")
        page.wait_for_load_state("networkidle")
        assert has_no_sideways_scroll(page), view


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
