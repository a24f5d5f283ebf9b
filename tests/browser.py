"""A browser for the pages of servers, as fixtures: conftest.py files import them; and what it shows to whom."""

import contextlib
import importlib.util
import pathlib
import shutil
import threading

import pytest


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    """The folder where the browser saves."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def chromium(downloads):
    """A driver of Debian's chromium that reaches this machine alone."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (browser and driver):
        pytest.skip("THE PAGE IS NOT TESTED: no chromium and chromedriver here (apt-get install chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-dev-shm-usage",
        "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):
        options.add_argument(f"--{argument}")
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chromium = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chromium
    chromium.quit()


def set_window(chromium, width, scheme):
    """Gives a browser's window a width, and "light" or "dark" colours."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def accessibility(chromium, width, options="{}"):
    """Returns axe's results for the page, which has no violation and fits into its window."""
    if not (found := importlib.util.find_spec("axe_core_python")):
        pytest.skip("ACCESSIBILITY IS NOT TESTED: axe-core-python is not installed")
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    chromium.execute_script(pathlib.Path(found.origin).with_name("axe.min.js").read_text())
    results = chromium.execute_async_script(f"axe.run({options}).then(arguments[0])")
    assert results["passes"] and not [(one["id"], one["nodes"][0]["html"]) for one in results["violations"]]
    return results


@contextlib.contextmanager
def served(application):
    """Serves a WSGI application as long as the context lasts; gives its address."""
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}/"
    finally:
        server.shutdown()
        thread.join(20)
