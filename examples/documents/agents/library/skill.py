"""The skills of library: documents in SQLite, each with the summary that summarizer wrote."""

import hashlib
import sqlite3
from pathlib import Path

import agentd

from generated import library, summarizer

DATABASE = Path(__file__).parent / "data" / "library.db"

TABLES = """
create table if not exists documents (id text primary key, title text not null, text text not null, summary text not null);
create virtual table if not exists words using fts5 (id unindexed, title, text);
"""


class Library:
    def __init__(self, database: "str | Path") -> None:
        self.db = sqlite3.connect(database)
        self.db.executescript(TABLES)

    def add_document(self, payload: library.AddDocumentRequest, call: library.Call) -> library.AddDocumentResponse:
        id = hashlib.sha256(payload["text"].encode()).hexdigest()[:16]
        row = self.db.execute("select summary from documents where id = ?", (id,)).fetchone()
        if row:
            return {"id": id, "summary": row[0], "known": True}
        # What summarizer refuses, and why, is what our caller is told.
        try:
            summary = agentd.unwrap(summarizer.Client(call.client).summarize({"text": payload["text"]}))["summary"]
        except agentd.CallError as e:
            raise agentd.SkillError(f"no summary: {e}", retryable=e.retryable) from e
        with self.db:  # both tables or none
            self.db.execute("insert or ignore into documents values (?, ?, ?, ?)", (id, payload["title"], payload["text"], summary))
            self.db.execute("insert into words values (?, ?, ?)", (id, payload["title"], payload["text"]))
        call.log.info("keeps %s", id)
        return {"id": id, "summary": summary, "known": False}

    def search(self, payload: library.SearchRequest, call: library.Call) -> library.SearchResponse:
        # Quoted, words are no operators of FTS5.
        query = " ".join('"' + word.replace('"', '""') + '"' for word in payload["words"])
        rows = self.db.execute(
            "select id, documents.title, summary from words join documents using (id) where words match ? order by rank limit ?",
            (query, payload.get("limit", 10)),
        )
        return {"results": [{"id": id, "title": title, "summary": summary} for id, title, summary in rows]}


if __name__ == "__main__":
    skill = Library(DATABASE)
    library.serve({"add-document": skill.add_document, "search": skill.search})
