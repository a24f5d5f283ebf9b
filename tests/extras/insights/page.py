"""Drives the page of t2t-insights-server in a browser."""

from urllib.parse import urlencode

from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser import set_window

_EDGES = """
const isShown = (group) => group.tagName === 'svg' || (getComputedStyle(group).display !== 'none'
    && getComputedStyle(group).opacity !== '0' && isShown(group.parentElement));
return [...arguments[0].querySelectorAll('.head')].filter(isShown).flatMap((group) =>
    [...group.querySelectorAll('[data-weight]')].map(({dataset, attributes}) => [group.dataset.head, dataset.query,
        dataset.key, dataset.weight, (attributes['stroke-opacity'] ?? attributes['fill-opacity']).value].map(Number)));
"""


class Page:
    """The page at an address, with the state of a hash; the model has answered when a method returns.

    Args:
        chromium: selenium's driver.
        address: str.
        width: int, of the window.
        scheme: "light" or "dark".
        **state: of the page; see static/state.js.
    """

    def __init__(self, chromium, address, width=1280, scheme="light", **state):
        self.chromium = chromium
        set_window(chromium, width, scheme)
        chromium.get("about:blank")  # otherwise another hash alone would not load the page anew
        chromium.get(f"{address}#{urlencode(state)}")
        self.wait(lambda: self.all("#about")[0].text)
        if state.get("text"):
            self.wait_for_answer()

    def all(self, selector):
        return self.chromium.find_elements("css selector", selector)

    def one(self, selector):
        (found,) = self.all(selector)
        return found

    def texts(self, selector):
        return [element.text for element in self.all(selector)]

    def run(self, script, *arguments):
        return self.chromium.execute_script(script, *arguments)

    def wait(self, condition, seconds=60):
        return WebDriverWait(self.chromium, seconds, 0.02).until(lambda _: condition())

    def wait_for_answer(self, models=1):
        """Waits for what so many models have to say."""
        self.wait(
            lambda: len(self.all("article[aria-busy=false]")) >= models and not self.all("article[aria-busy=true]")
        )

    def type(self, text, field="text"):
        """Types into an emptied field and sends the form, all by the keyboard."""
        self.one(f"#{field}").send_keys(Keys.CONTROL, "a")
        self.one(f"#{field}").send_keys(Keys.DELETE, text, Keys.CONTROL, Keys.ENTER)
        self.wait_for_answer()

    def click(self, selector, at=0):
        self.all(selector)[at].click()
        self.wait_for_answer()

    def double_click(self, element):
        ActionChains(self.chromium).double_click(element).perform()

    def point_at(self, element):
        ActionChains(self.chromium).move_to_element(element).perform()

    def press(self, *keys):
        ActionChains(self.chromium).send_keys(*keys).perform()

    def choose(self, label, value):
        """Chooses in one of the explorer's lists."""
        script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'));"
        (element,) = [one for one in self.all(".explorer label") if one.text.startswith(label)]
        self.run(script, element.find_element("css selector", "select"), str(value))

    def edges(self, picture=".explorer .picture"):
        """Returns what is visible of the weights in a picture: {(head, query, key): weight}."""
        found = self.run(_EDGES, self.one(picture))
        assert all(weight == opacity for *_, weight, opacity in found)
        return {(int(head), int(query), int(key)): weight for head, query, key, weight, _ in found}
