package search

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func load(t *testing.T, notes map[string]string) *Index {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range notes {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	x, err := Load(fsys, "notes")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestSections(t *testing.T) {
	x := load(t, map[string]string{
		"a.md": "# Fruit\n\nAbout fruit.\n\n## Apples\n\nApples keep\nall winter.\n\n- peel them\n- core them\n  twice\n\n## Empty\n\n## Prices\n| what | cost |\n|---|:-:|\n| apple | 1 |\n",
		"b.md": "no heading\n",
	})
	type want struct {
		title string
		path  string
		lines []paragraph
	}
	wants := []want{
		{"Fruit", "notes/a.md", []paragraph{{3, "About fruit."}}},
		{"Fruit: Apples", "notes/a.md", []paragraph{{7, "Apples keep all winter."}, {10, "- peel them"}, {11, "- core them twice"}}},
		{"Fruit: Prices", "notes/a.md", []paragraph{{17, "| what | cost |"}, {19, "| apple | 1 |"}}},
		{"b", "notes/b.md", []paragraph{{1, "no heading"}}},
	}
	if len(x.sections) != len(wants) {
		t.Fatalf("got %d sections, want %d", len(x.sections), len(wants))
	}
	for i, w := range wants {
		s := x.sections[i]
		if s.title != w.title || s.path != w.path || len(s.paragraphs) != len(w.lines) {
			t.Errorf("got %+v, want %+v", s, w)
			continue
		}
		for j, p := range w.lines {
			if s.paragraphs[j] != p {
				t.Errorf("%s: got %+v, want %+v", w.title, s.paragraphs[j], p)
			}
		}
	}
}

func TestRanking(t *testing.T) {
	x := load(t, map[string]string{
		"keys.md":  "# Keys\n\n## Leaked keys\n\nRevoke a leaked key at once.\n\n## Making keys\n\nUse the key service, and never mail a key.\n",
		"tests.md": "# Tests\n\n## Skipped\n\nA skipped test needs an issue.\n\nThe key is the date.\n",
		"misc.md":  "# Misc\n\nNothing of the sort, nothing at all, only many words to make it longer than the others are.\n",
	})
	tests := []struct {
		query string
		want  []string // title@line
	}{
		{"leaked key", []string{"Keys: Leaked keys@5", "Keys: Making keys@9", "Tests: Skipped@7"}},
		{"LEAKED-KEYS", []string{"Keys: Leaked keys@5", "Keys: Making keys@9", "Tests: Skipped@7"}},
		{"skipped", []string{"Tests: Skipped@5"}},
		{"date", []string{"Tests: Skipped@7"}},
		{"making", []string{"Keys: Making keys@9"}}, // only its title holds it
		{"zebra", nil},
		{"", nil},
		{"?!", nil},
	}
	for _, tt := range tests {
		var got []string
		for _, r := range x.Search(tt.query, 10) {
			got = append(got, r.Title+"@"+string(rune('0'+r.Line)))
		}
		if strings.Join(got, ", ") != strings.Join(tt.want, ", ") {
			t.Errorf("%q: got %q, want %q", tt.query, got, tt.want)
		}
	}
}

// The formula, worked by hand: of three sections two hold the one word and one
// holds the other, in its title; how often does not matter.
func TestScore(t *testing.T) {
	x := load(t, map[string]string{"pear.md": "apple apple\n", "b.md": "apple\n", "c.md": "fig\n"})
	apple, pear := math.Log(1+3/3.0), math.Log(1+3/2.0)
	want := map[string]float64{"notes/pear.md": apple + 2*pear, "notes/b.md": apple}
	got := x.Search("pears apple apple", 9)
	if len(got) != len(want) {
		t.Errorf("got %+v", got)
	}
	for _, r := range got {
		if math.Abs(r.Score-want[r.Path]) > 0.0005 {
			t.Errorf("%s: got %.4f, want %.4f", r.Path, r.Score, want[r.Path])
		}
	}
}

func TestLimit(t *testing.T) {
	x := load(t, map[string]string{"a.md": "pear\n", "b.md": "pear\n", "c.md": "pear\n"})
	for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, 3: 3, 9: 3} {
		if got := x.Search("pear", limit); len(got) != want {
			t.Errorf("limit %d: %d results, want %d", limit, len(got), want)
		}
	}
	if got := x.Search("pear", 3); got[0].Path != "notes/a.md" || got[2].Path != "notes/c.md" {
		t.Errorf("equals are not in the order of their files: %+v", got)
	}
	if got := x.Search("zebra", 3); got == nil {
		t.Error("no result is null in JSON")
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("wörter ", 60)
	x := load(t, map[string]string{"a.md": long, "b.md": "x" + strings.Repeat("y", 400) + "\n\nshort"})
	got := x.Search("wörter", 1)[0].Excerpt
	if n := utf8.RuneCountInString(got); n > maxExcerpt || n < maxExcerpt-10 || !strings.HasSuffix(got, "wörter…") {
		t.Errorf("%d code points: %q", n, got)
	}
	if got := x.Search("b", 1)[0].Excerpt; utf8.RuneCountInString(got) != maxExcerpt || !strings.HasSuffix(got, "y…") {
		t.Errorf("a word without an end: %q", got)
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(fstest.MapFS{"a.txt": {Data: []byte("x")}}, "agents/x/notes"); err == nil || !strings.Contains(err.Error(), "agents/x/notes") {
		t.Errorf("no notes: %v", err)
	}
	if _, err := Load(fstest.MapFS{"a.md": {Mode: fs.ModeDir}}, "notes"); err == nil {
		t.Error("a folder is taken for a note")
	}
	if _, err := Load(os.DirFS(t.TempDir()+"/none"), "notes"); err == nil || errors.Is(err, fs.ErrPermission) {
		t.Errorf("no folder: %v", err)
	}
}

// Whatever the notes and the query are, results are in order, point into their
// file, and can be shown.
func TestSearchProperties(t *testing.T) {
	text := rapid.StringMatching(`(#? ?[a-d]{1,3}s? ?|\n|## |\| |- |é|\x{FFFD}|1\. ){0,40}`)
	rapid.Check(t, func(t *rapid.T) {
		fsys := fstest.MapFS{}
		for _, name := range []string{"a.md", "b.md", "c.md"} {
			fsys[name] = &fstest.MapFile{Data: []byte(text.Draw(t, name))}
		}
		x, err := Load(fsys, "notes")
		if err != nil {
			t.Fatal(err)
		}
		results := x.Search(rapid.StringMatching(`([a-d]{1,3}s? ){0,4}`).Draw(t, "query"), 5)
		for i, r := range results {
			if r.Score <= 0 || i > 0 && r.Score > results[i-1].Score {
				t.Fatalf("scores out of order: %+v", results)
			}
			lines := strings.Split(string(fsys[strings.TrimPrefix(r.Path, "notes/")].Data), "\n")
			if r.Line < 1 || r.Line > len(lines) || !strings.HasPrefix(r.Excerpt, strings.TrimSpace(lines[r.Line-1])) {
				t.Fatalf("%+v does not begin at its line", r)
			}
			if r.Title == "" || r.Excerpt == "" || utf8.RuneCountInString(r.Excerpt) > maxExcerpt {
				t.Fatalf("cannot be shown: %+v", r)
			}
		}
	})
}
