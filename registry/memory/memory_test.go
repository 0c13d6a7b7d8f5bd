package memory_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/memory"
	"github.com/agentd/agentd/rpc"
)

// An agent with the capability.
type agent struct {
	t   interface{ Fatalf(string, ...any) }
	res *registry.Resolved
}

func resolve(dir, config string) (*registry.Resolved, error) {
	reg := registry.New()
	if err := reg.Register(memory.New(nil)); err != nil {
		return nil, err
	}
	return reg.Resolve(registry.Context{Context: context.Background(), Agent: "writer", StateDir: dir},
		[]registry.Capability{{Key: "memory", Config: json.RawMessage(config)}})
}

func start(t *testing.T, dir, config string) agent {
	t.Helper()
	res, err := resolve(dir, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Close(context.Background()) })
	return agent{t, res}
}

// A reply has the members of all results.
type reply struct {
	ID         int64
	Text       string
	Excerpt    string
	Tags       []string
	Created    time.Time
	Updated    time.Time
	Notes      []reply
	Total      int
	NextBefore int64
}

func (r reply) ids() []int64 {
	ids := []int64{}
	for _, n := range r.Notes {
		ids = append(ids, n.ID)
	}
	return ids
}

func (a agent) call(ctx context.Context, tool string, args map[string]any) (r reply, code registry.Code) {
	encoded, err := json.Marshal(args)
	if err != nil {
		a.t.Fatalf("%v", err)
	}
	result := a.res.Call(ctx, tool, encoded)
	if code := registry.FailureCode(result); code != "" {
		return r, code
	}
	if err := json.Unmarshal(result.StructuredContent.(json.RawMessage), &r); err != nil {
		a.t.Fatalf("%v", err)
	}
	return r, ""
}

func (a agent) must(tool string, args map[string]any) reply {
	r, code := a.call(context.Background(), tool, args)
	if code != "" {
		a.t.Fatalf("%s %v: %s", tool, args, code)
	}
	return r
}

func (a agent) keep(text string, tags ...string) int64 {
	return a.must("remember", map[string]any{"text": text, "tags": append([]string{}, tags...)}).ID
}

func TestNotes(t *testing.T) {
	dir := t.TempDir()
	a := start(t, dir, "{}")
	before := time.Now().Add(-time.Second)
	first := a.keep("Ada prefers mail in the morning.", "ada", "mail")
	second := a.keep("The build runs on Tuesdays.")
	got := a.must("get_note", map[string]any{"id": first})
	if got.Text != "Ada prefers mail in the morning." || !slices.Equal(got.Tags, []string{"ada", "mail"}) || got.Created.Before(before) || !got.Updated.Equal(got.Created) {
		t.Errorf("%+v", got)
	}
	a.must("remember", map[string]any{"id": first, "text": "Ada prefers calls."})
	list := a.must("list_notes", nil)
	if !slices.Equal(list.ids(), []int64{second, first}) || list.Total != 2 || list.Notes[1].Excerpt != "Ada prefers calls." || len(list.Notes[1].Tags) != 0 {
		t.Errorf("%+v", list)
	}
	if found := a.must("search_notes", map[string]any{"query": "mail"}); len(found.Notes) != 0 {
		t.Errorf("the words of a text that was replaced are found: %+v", found)
	}
	a.must("forget_note", map[string]any{"id": second})
	for _, tool := range []string{"get_note", "forget_note"} {
		if _, code := a.call(t.Context(), tool, map[string]any{"id": second}); code != registry.NotFound {
			t.Errorf("%s: %s", tool, code)
		}
	}
	if _, code := a.call(t.Context(), "remember", map[string]any{"id": second, "text": "x"}); code != registry.NotFound {
		t.Errorf("a forgotten note is replaced: %s", code)
	}
	if err := a.res.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The next process has them, and numbers on.
	a = start(t, dir, "{}")
	if list := a.must("list_notes", nil); !slices.Equal(list.ids(), []int64{first}) || list.Total != 1 {
		t.Errorf("%+v", list)
	}
	if third := a.keep("x"); third <= second {
		t.Errorf("the number %d is used again", third)
	}
}

func TestListGoesOn(t *testing.T) {
	a := start(t, t.TempDir(), "{}")
	for i := range 7 {
		a.keep(fmt.Sprintf("note %d", i), []string{"even", "odd"}[i%2])
	}
	var all []int64
	args := map[string]any{"limit": 3, "tag": "even"}
	for {
		page := a.must("list_notes", args)
		all = append(all, page.ids()...)
		if page.NextBefore == 0 {
			break
		}
		args["before"] = page.NextBefore
	}
	if !slices.Equal(all, []int64{7, 5, 3, 1}) {
		t.Errorf("got %v", all)
	}
}

// What is searched for is words: none of it is taken for the index's own language.
func TestSearch(t *testing.T) {
	a := start(t, t.TempDir(), "{}")
	for _, n := range [][]string{
		1: {"The invoice of the Café was paid twice."},
		2: {"Invoices go to accounting; the café is closed.", "accounting"},
		3: {"He was running late."},
		4: {"Привет мир"},
		5: {"see issue AG-142 in foo_bar.go"},
		6: {"text tags rowid NEAR OR"},
		7: {"東京タワー"},
	} {
		if n != nil {
			a.keep(n[0], n[1:]...)
		}
	}
	for query, want := range map[string][]int64{
		"invoice":               {1, 2},
		"cafe":                  {1, 2},
		"INVOICE paid":          {1, 2},
		"accounting":            {2},
		"run":                   {3},
		"привет":                {4},
		"AG-142":                {5},
		"foo_bar.go":            {5},
		`"paid twice"`:          {1},
		`"twice paid"`:          {},
		`"paid twice`:           {1}, // a quote that does not end
		"invoi*":                {1, 2},
		"invoi":                 {},
		"東京*":                   {7},
		"text:invoice":          {}, // "text invoice"
		"NEAR(paid twice)":      {1},
		"accounting;the":        {2},
		"rowid":                 {6},
		"invoice NOT paid":      {1, 2}, // "not" is in none
		`late" OR tags : "x`:    {3},
		"' OR 1=1 --":           {6},
		"{text tags}: ^running": {3, 6},
		"nothing":               {},
	} {
		got := a.must("search_notes", map[string]any{"query": query}).ids()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", query, got, want)
		}
	}
	if got := a.must("search_notes", map[string]any{"query": "invoice paid", "match": "all"}).ids(); !slices.Equal(got, []int64{1}) {
		t.Errorf("all: %v", got)
	}
	if got := a.must("search_notes", map[string]any{"query": "invoice", "tag": "accounting"}).ids(); !slices.Equal(got, []int64{2}) {
		t.Errorf("with a tag: %v", got)
	}
	if got := a.must("search_notes", map[string]any{"query": "paid twice café"}); got.Notes[0].ID != 1 || !strings.Contains(got.Notes[0].Excerpt, "paid twice") {
		t.Errorf("the best is not the first: %+v", got)
	}
	for _, query := range []string{"*", `""`, "-- ;", "\x00"} {
		if _, code := a.call(t.Context(), "search_notes", map[string]any{"query": query}); code != registry.InvalidArguments {
			t.Errorf("%q: %s", query, code)
		}
	}
}

// After any sequence of operations a word finds the notes that have it, and no others.
func TestIndexFollowsNotes(t *testing.T) {
	res := start(t, t.TempDir(), `{"maxNotes": 6, "maxBytes": 60}`).res
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++ // a tenant for each, rather than a file
		ctx := rpc.WithInvocation(context.Background(), &rpc.Invocation{TenantID: fmt.Sprint(run)})
		a := agent{t, res}
		model := map[int64][]string{}
		word := rapid.SampledFrom([]string{"apfel", "birne", "Öl", "7", "\x00"})
		room := func() (n int) {
			for _, words := range model {
				n += len(strings.Join(words, " "))
			}
			return n
		}
		for _, step := range rapid.SliceOfN(rapid.SampledFrom([]string{"keep", "replace", "forget"}), 1, 12).Draw(t, "steps") {
			id, args := int64(0), map[string]any{}
			if step != "keep" && len(model) > 0 {
				id = rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "id")
				args["id"] = id
			}
			if step == "forget" && id > 0 {
				if _, code := a.call(ctx, "forget_note", args); code != "" {
					t.Fatal(code)
				}
				delete(model, id)
				continue
			}
			words := rapid.SliceOfN(word, 1, 4).Draw(t, "words")
			args["text"] = strings.Join(words, " ")
			r, code := a.call(ctx, "remember", args)
			before := maps.Clone(model)
			model[r.ID] = words // 0 where it was refused
			if code != "" {
				delete(model, 0)
				model[id] = words
			}
			if fits := len(model) <= 6 && room() <= 60; fits != (code == "") {
				t.Fatalf("%v: %q, with %d notes of %d bytes", args, code, len(model), room())
			}
			if code != "" {
				model = before
			}
		}
		for _, w := range []string{"apfel", "birne", "ol", "7"} {
			want := []int64{}
			for id, words := range model {
				if slices.ContainsFunc(words, func(s string) bool { return strings.ReplaceAll(s, "Ö", "o") == w }) {
					want = append(want, id)
				}
			}
			r, code := a.call(ctx, "search_notes", map[string]any{"query": w})
			got := r.ids()
			slices.Sort(got)
			slices.Sort(want)
			if code != "" || !slices.Equal(got, want) {
				t.Fatalf("%s finds %v, want %v", w, got, want)
			}
		}
	})
}

func TestBounds(t *testing.T) {
	a := start(t, t.TempDir(), `{"maxNotes": 2, "maxNoteBytes": 10, "maxBytes": 15}`)
	if _, code := a.call(t.Context(), "remember", map[string]any{"text": "ééééééé"}); code != registry.TooLarge {
		t.Errorf("14 bytes of 10: %s", code)
	}
	first := a.keep("0123456789")
	if _, code := a.call(t.Context(), "remember", map[string]any{"text": "012345"}); code != registry.TooLarge {
		t.Errorf("16 bytes of 15 together: %s", code)
	}
	second := a.keep("01234")
	if _, code := a.call(t.Context(), "remember", map[string]any{"text": "0"}); code != registry.TooLarge {
		t.Errorf("a third note of 2: %s", code)
	}
	if _, code := a.call(t.Context(), "remember", map[string]any{"id": second, "text": "012345"}); code != registry.TooLarge {
		t.Errorf("a longer second note: %s", code)
	}
	if got := a.must("get_note", map[string]any{"id": second}); got.Text != "01234" {
		t.Errorf("a refusal left %q", got.Text)
	}
	a.must("forget_note", map[string]any{"id": first})
	a.keep("0123456789")
	for name, args := range map[string]map[string]any{
		"empty":     {"text": ""},
		"tags":      {"text": "x", "tags": strings.Split(strings.Repeat("a,", 16)+"b", ",")},
		"twice":     {"text": "x", "tags": []string{"a", "a"}},
		"long tag":  {"text": "x", "tags": []string{strings.Repeat("a", 65)}},
		"surplus":   {"text": "x", "tenant": "other"},
		"no number": {"text": "x", "id": "1"},
	} {
		if _, code := a.call(t.Context(), "remember", args); code != registry.InvalidArguments {
			t.Errorf("%s: %s", name, code)
		}
	}
	for _, config := range []string{`{"maxNotes": 0}`, `{"path": "/etc/passwd"}`, `{"maxNoteBytes": 9999999}`} {
		if _, err := resolve(t.TempDir(), config); err == nil {
			t.Errorf("%s is accepted", config)
		}
	}
}

// A note is its tenant's: no tool of another one shows, changes or counts it.
func TestTenants(t *testing.T) {
	a := start(t, t.TempDir(), `{"maxNotes": 1}`)
	as := func(tenant string) context.Context {
		return rpc.WithInvocation(t.Context(), &rpc.Invocation{TenantID: tenant})
	}
	kept, code := a.call(as("red"), "remember", map[string]any{"text": "the secret of red", "tags": []string{"red"}})
	if code != "" {
		t.Fatal(code)
	}
	for _, ctx := range []context.Context{as("blue"), as(""), t.Context()} {
		for _, tool := range []string{"get_note", "forget_note"} {
			if _, code := a.call(ctx, tool, map[string]any{"id": kept.ID}); code != registry.NotFound {
				t.Errorf("%s: %s", tool, code)
			}
		}
		if _, code := a.call(ctx, "remember", map[string]any{"id": kept.ID, "text": "mine"}); code != registry.NotFound {
			t.Error(code)
		}
		if r, code := a.call(ctx, "search_notes", map[string]any{"query": "secret red"}); code != "" || len(r.Notes) != 0 {
			t.Errorf("%+v, %s", r, code)
		}
		if r, code := a.call(ctx, "list_notes", nil); code != "" || len(r.Notes) != 0 || r.Total != 0 {
			t.Errorf("%+v, %s", r, code)
		}
	}
	if _, code := a.call(as("blue"), "remember", map[string]any{"text": "blue has room of its own"}); code != "" {
		t.Error(code)
	}
}

// What is forgotten is in no file afterwards, nor are its words in the index.
func TestForgottenIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	a := start(t, dir, "{}")
	for i := range 50 {
		a.keep(fmt.Sprintf("a plain note %d", i))
	}
	id := a.keep("swordfish " + strings.Repeat("swordfish7 ", 800))
	a.must("forget_note", map[string]any{"id": id})
	replaced := a.keep("marzipan")
	a.must("remember", map[string]any{"id": replaced, "text": "x"})
	if err := a.res.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"swordfish", "marzipan"} {
			if bytes.Contains(content, []byte(word)) {
				t.Errorf("%s still has %q", f.Name(), word)
			}
		}
	}
}

func TestSkippedWithoutStateFolder(t *testing.T) {
	res, err := resolve("", "{}")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close(t.Context())
	if st := res.Status(); len(st) != 1 || !strings.Contains(st[0].Skipped, "state folder") {
		t.Errorf("%+v", st)
	}
}

// A list without the tools that write leaves nothing that writes.
func TestAllowlist(t *testing.T) {
	a := start(t, t.TempDir(), `{"tools": ["get_note", "search_notes"]}`)
	if _, code := a.call(t.Context(), "remember", map[string]any{"text": "x"}); code != registry.NotFound {
		t.Error(code)
	}
	if tools := a.res.Tools(); len(tools) != 2 {
		t.Errorf("%d tools", len(tools))
	}
}

const childDir = "AGENTD_TEST_MEMORY_DIR"

// TestMain is another process of the agent where the environment names a folder: it
// keeps notes until its input ends, and prints the number of each when it is kept.
func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	res, err := resolve(dir, "{}")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		args, _ := json.Marshal(map[string]string{"text": fmt.Sprintf("note %d of process%d", i, os.Getpid())})
		result := res.Call(context.Background(), "remember", args)
		if result.IsError {
			fmt.Fprintln(os.Stderr, registry.FailureCode(result))
			os.Exit(1)
		}
		fmt.Printf("%s\n", result.StructuredContent)
	}
}

// Processes that share a file lose no note of each other, nor one that was kept before
// they were killed in the middle of the next.
func TestProcessesAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	dir := t.TempDir()
	const notes = 20
	want := map[int64]int{} // the pid of the process that kept a note
	var outputs []*bufio.Scanner
	var children []*exec.Cmd
	for range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env, child.Stderr = append(os.Environ(), childDir+"="+dir), os.Stderr
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		children, outputs = append(children, child), append(outputs, bufio.NewScanner(out))
	}
	for i, out := range outputs {
		for n := 0; out.Scan(); n++ {
			var r reply
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatalf("%q: %v", out.Text(), err)
			}
			if other, twice := want[r.ID]; twice {
				t.Errorf("note %d is kept by %d and by %d", r.ID, other, children[i].Process.Pid)
			}
			want[r.ID] = children[i].Process.Pid
			if n == notes { // and then what is still in the pipe
				if err := children[i].Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = children[i].Wait() // it was killed
	}
	if len(want) <= 3*notes {
		t.Fatalf("%d notes", len(want))
	}
	a := start(t, dir, "{}")
	for id, pid := range want {
		if got := a.must("get_note", map[string]any{"id": id}); !strings.HasSuffix(got.Text, fmt.Sprintf("process%d", pid)) {
			t.Errorf("note %d: %q, want one of process %d", id, got.Text, pid)
		}
	}
	total := 0
	for _, child := range children {
		found := a.must("search_notes", map[string]any{"query": fmt.Sprintf("process%d", child.Process.Pid), "limit": 50})
		total += len(found.Notes)
	}
	if list := a.must("list_notes", nil); total == 0 || list.Total < len(want) {
		t.Errorf("%d are counted, %d found, %d kept", list.Total, total, len(want))
	}
}
