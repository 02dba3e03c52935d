# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""That everybody can use the live page: on a phone, with a keyboard, in the dark, without eyes."""

import json
import os
import unittest

import mock_worker
from page_test import FOCUSED, PageTest
from processes import some

# The lowest contrast of a text with what is behind it, over all that can be seen, as WCAG 2.2
# defines it, and where. Backgrounds are opaque but for tints that the browser has mixed already.
LOWEST_CONTRAST = """(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgb = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const luminance = (colour) => rgb(colour).slice(0, 3)
        .map((part) => part / 255)
        .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
    const contrast = (one, other) => {
        const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
        return (light + 0.05) / (dark + 0.05);
    };
    const behind = (element) => {
        for (let each = element; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (rgb(colour)[3] === 255) return colour;
        }
        throw new Error('nothing is behind it');
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let lowest = { contrast: 21 };
    let texts = 0;
    while (walker.nextNode()) {
        const text = walker.currentNode.textContent.trim();
        const element = walker.currentNode.parentElement;
        if (!text || !element.checkVisibility({ visibilityProperty: true })) continue;
        texts += 1;
        const found = contrast(getComputedStyle(element).color, behind(element));
        if (found < lowest.contrast) lowest = { contrast: found, text };
    }
    return { ...lowest, texts };
})()"""

# What cannot be read of the pools: texts that are cut off, and words broken over two lines.
UNREADABLE_POOLS = """[...document.querySelectorAll('#pools th, #pools td')].flatMap((cell) => {
    const [text] = cell.childNodes;
    const broken = [...text.data.matchAll(/\\w+/g)].filter(({ index, 0: word }) => {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        return range.getClientRects().length > 1;
    });
    return cell.scrollWidth > cell.clientWidth ? [cell.innerText] : broken.map(([word]) => word);
})"""


class PageForEverybody(PageTest):
    """The live page for everybody"""

    def test_moves_nothing_whatever_happens(self):
        for size in some(((360, 780), (1024, 900), (1920, 1080))):
            worker = self.worker(mock_worker.replaying, workers=2, devices=400)
            tab = self.tab(worker, *size)
            for status in (
                mock_worker.healthy,
                mock_worker.refused_key,
                mock_worker.stalled,
                lambda *_: None,
                mock_worker.healthy,
                mock_worker.restricted,
                mock_worker.healthy,
            ):
                self.show(worker, status)
            self.assertEqual(tab.layout_shifts(), [], size)

    def test_fits_from_a_phone_to_a_large_screen(self):
        for status in (mock_worker.refused_key, mock_worker.stalled, mock_worker.restricted):
            tab = self.tab(self.worker(status, workers=2, devices=400))
            self.fits(tab)

    def fits(self, tab):
        for width in some((320, 360, 768, 1024, 1280, 1920, 3840), of=6):
            tab.resize(width, 900)
            tab.until(f"innerWidth === {width}")
            self.assertEqual(tab.value("document.documentElement.scrollWidth"), width)
            cut = tab.value("""[...document.querySelectorAll('.panel, #state, .figures div, h2')]
                .filter((each) => each.checkVisibility() && (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1))
                .map((each) => each.innerText)""")
            self.assertEqual(cut, [], width)
            self.assertEqual(tab.value(UNREADABLE_POOLS), [], width)

    def test_has_the_contrast_of_WCAG_AA_in_both_schemes(self):
        for scheme in ("dark", "light"):
            worker = self.worker(workers=2, devices=400)
            tab = self.tab(worker, scheme=scheme)
            for status in (
                mock_worker.healthy,
                mock_worker.refused_key,
                mock_worker.stalled,
                mock_worker.restricted,
                mock_worker.replaying,
                lambda *_: None,
            ):
                self.show(worker, status)
                lowest = tab.value(LOWEST_CONTRAST)
                self.assertGreater(lowest["texts"], 80)
                self.assertGreaterEqual(lowest["contrast"], 4.5, (scheme, lowest))
        tab = self.tab(
            self.worker(token="correct-horse-battery"),
            ready="!document.querySelector('#access').hidden",
            scheme="light",
        )
        self.assertGreaterEqual(tab.value(LOWEST_CONTRAST)["contrast"], 4.5)

    def test_has_marks_that_stand_out_in_both_schemes(self):
        palettes = {}
        for scheme in ("dark", "light"):
            tab = self.tab(self.worker(), scheme=scheme)
            palettes[scheme] = tab.value("""Object.fromEntries(
                ['panel', 'ground', 'lit', 'cool', 'high', 'good', 'warning', 'error', 'dim'].map((name) =>
                    [name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()]))""")
            palette = palettes[scheme]
            for name in ("lit", "cool", "high", "good", "warning", "error", "dim"):
                for ground in ("panel", "ground"):
                    self.assertGreaterEqual(contrast(palette[name], palette[ground]), 3, (scheme, name))
        self.assertNotEqual(palettes["dark"]["panel"], palettes["light"]["panel"])

    def test_is_used_with_the_keyboard_alone(self):
        worker = self.worker(mock_worker.refused_key, workers=2, devices=400)
        tab = self.tab(worker)
        reached = []
        for _ in range(20):
            tab.press("Tab", 9)
            name, is_marked = tab.value(FOCUSED)
            if name in reached or name == "BODY":
                break
            self.assertTrue(is_marked, name)
            reached.append(name)
        self.assertEqual(reached[0], "radio")
        for panel in ("problems", "breakers", "pools-title", "lag-title", "unmatched-title",
                      "restrictions", "set-aside-title"):
            self.assertIn(panel, reached)
        tab.value("document.querySelector('#workers input').focus()")
        tab.press("ArrowRight", 39)
        self.assertEqual(
            tab.value("document.querySelector('#workers label:has(:checked)').innerText"), "worker 2"
        )
        tab.until("document.querySelector('#phase').textContent === 'Running'")
        self.assertTrue(any(address.endswith("workers/2/status") for address in tab.requested()))

    def test_is_understood_by_a_screen_reader(self):
        tab = self.tab(self.worker())
        nodes = tab.command("Accessibility.getFullAXTree")["nodes"]
        named = {
            (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if "role" in node
        }
        roles = [role for role, _ in named]
        for role in ("banner", "main", "status", "list", "table", "columnheader", "rowheader"):
            self.assertIn(role, roles)
        for title in (
            "Throughput",
            "Latency event to acceptance of controls",
            "Outcomes",
            "Pools connections to APNs",
            "Circuit breakers",
            "Restrictions of pushes and events",
            "Waiting",
            "Unmatched subjects that reached nobody",
        ):
            self.assertIn(("region", title), named)
        self.assertEqual(tab.value("document.documentElement.lang"), "en")

    def test_speaks_when_the_cause_changes_and_keeps_what_is_selected(self):
        def counting(turn, workers):
            status = mock_worker.stalled(turn, workers)
            text = json.dumps(status).replace("for 4 s", f"for {turn} s")
            return json.loads(text)

        worker = self.worker(counting)
        tab = self.tab(worker)
        live = "document.querySelector('[role=status]')"
        self.assertIn("APNs has not answered for", tab.value(f"{live}.textContent"))
        tab.value(f"""new MutationObserver(() => {{ window.spoken = {live}.textContent; }})
            .observe({live}, {{ childList: true, characterData: true, subtree: true }})""")
        tab.value("""window.card = document.querySelector('#problems li');
            getSelection().selectAllChildren(window.card.querySelector('p'));
            window.selected = String(getSelection());""")
        shown = tab.text("#summary"), tab.text("#problems b")
        tab.turns(3)
        self.assertNotEqual(tab.text("#summary"), shown[0])
        self.assertNotEqual(tab.text("#problems b"), shown[1])
        self.assertIsNone(tab.value("window.spoken"))
        self.assertTrue(tab.value("window.card === document.querySelector('#problems li')"))
        self.assertIn("firewall, proxy", tab.value("window.selected"))
        self.assertTrue(tab.value("String(getSelection()) === window.selected"))
        self.show(worker, mock_worker.healthy)
        self.assertEqual(tab.value("window.spoken"), "All is well.")

    def test_lights_the_devices_of_accepted_pushes(self):
        for motion in ("no-preference", "reduce"):
            worker = self.worker(workers=2, devices=400)
            tab = self.tab(worker, motion=motion)
            self.assertEqual(tab.value("document.querySelectorAll('#devices i').length"), 400)
            lit = (
                "document.getAnimations().length"
                if motion != "reduce"
                else "document.querySelectorAll('#devices .lit').length"
            )
            tab.until(f"{lit} >= 40")
            self.assertRegex(
                tab.value("document.querySelector('#devices').getAttribute('aria-label')"),
                r"[1-9]\d* of them lit",
            )
            if motion == "reduce":
                self.assertEqual(tab.value("document.getAnimations().length"), 0)

    def test_is_pictured_in_the_documentation(self):
        folder = os.environ.get("SCREENSHOTS")
        if not folder:
            self.skipTest("SCREENSHOTS names no folder")
        for name, status, scheme in (
            ("live-page-dark", mock_worker.healthy, "dark"),
            ("live-page-light", mock_worker.refused_key, "light"),
        ):
            worker = self.worker()
            tab = self.tab(worker, 1280, 960, scheme=scheme, speed=10)
            tab.until("window.age() > 140000")
            worker.status = status
            tab.until("window.age() > 182000")
            tab.screenshot(os.path.join(folder, f"{name}.png"))


def contrast(one, other):
    """Returns the contrast of two colours such as #ffcf70."""

    def luminance(colour):
        parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


if __name__ == "__main__":
    unittest.main()
