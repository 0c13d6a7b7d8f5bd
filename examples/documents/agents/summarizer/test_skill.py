import unittest
from pathlib import Path

import agentd
from agentd.testing import SkillTest

from skill import summarize

CONTRACT = Path(__file__).parent / "capabilities.yaml"
TEXT = "Brokers carry messages. It rained. A broker that loses messages is no broker. Messages have owners."


class Summarize(unittest.TestCase):
    def test_sentences_that_say_most(self) -> None:
        with SkillTest({"summarize": summarize}, CONTRACT) as test:
            result = agentd.unwrap(test.call("summarize", {"text": TEXT}))
            self.assertEqual(result["summary"], "A broker that loses messages is no broker. Messages have owners.")
            self.assertEqual(result["keywords"][0], "messages")
            self.assertEqual(test.call("summarize", {"text": " … "})["status"], "error")


if __name__ == "__main__":
    unittest.main()
