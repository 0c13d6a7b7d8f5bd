import unittest
from pathlib import Path
from typing import Any

import agentd
from agentd.testing import Peer, SkillTest

from skill import Library

AGENTS = Path(__file__).parent.parent


def summarize(payload: Any) -> Any:
    if "nothing" in payload["text"]:
        raise agentd.SkillError("the text has no sentence")
    return {"summary": payload["text"][:9], "keywords": []}


class Documents(unittest.TestCase):
    def setUp(self) -> None:
        skill = Library(":memory:")
        self.addCleanup(skill.db.close)
        summarizer = Peer(AGENTS / "summarizer" / "capabilities.yaml", {"summarize": summarize})
        handlers = {"add-document": skill.add_document, "search": skill.search}
        self.test = SkillTest(handlers, AGENTS / "library" / "capabilities.yaml", peers=[summarizer])
        self.addCleanup(self.test.close)

    def call(self, capability: str, payload: object) -> Any:
        return agentd.unwrap(self.test.call(capability, payload))

    def test_a_document_is_kept_once_and_found(self) -> None:
        document = {"title": "Locks", "text": "Use locks. Or do not."}
        added = self.call("add-document", document)
        self.assertEqual((added["summary"], added["known"]), ("Use locks", False))
        self.assertTrue(self.call("add-document", document)["known"])
        self.assertEqual(len(self.test.requests), 1)
        found = self.call("search", {"words": ["locks", "use"]})["results"]
        self.assertEqual([r["id"] for r in found], [added["id"]])
        self.assertEqual(self.call("search", {"words": ['lo"cks OR use']})["results"], [])

    def test_what_cannot_be_summarized_is_not_kept(self) -> None:
        with self.assertRaisesRegex(agentd.CallError, "no summary: .*no sentence"):
            self.call("add-document", {"title": "Empty", "text": "nothing"})
        self.assertEqual(self.call("search", {"words": ["nothing"]})["results"], [])


if __name__ == "__main__":
    unittest.main()
