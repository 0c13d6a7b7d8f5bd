"""The skill of summarizer: the sentences whose words the text has most often."""

import re
from collections import Counter

import agentd

from generated import summarizer

COMMON = frozenset("a an and are as at be by for from has have in is it its of on or that the this to was were which will with".split())


def words(text: str) -> "list[str]":
    return [w for w in re.findall(r"\w+", text.lower()) if w not in COMMON]


def summarize(payload: summarizer.SummarizeRequest, call: summarizer.Call) -> summarizer.SummarizeResponse:
    sentences = [s.strip() for s in re.split(r"(?<=[.!?])\s+", payload["text"]) if words(s)]
    if not sentences:
        raise agentd.SkillError("the text has no sentence")
    counts = Counter(words(payload["text"]))

    def weight(i: int) -> float:
        found = words(sentences[i])
        return sum(counts[w] for w in found) / len(found)

    best = sorted(range(len(sentences)), key=weight, reverse=True)[: payload.get("sentences", 2)]
    return {
        "summary": " ".join(sentences[i] for i in sorted(best)),
        "keywords": [w for w, _ in counts.most_common(5)],
    }


if __name__ == "__main__":
    summarizer.serve({"summarize": summarize})
