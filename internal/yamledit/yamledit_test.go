package yamledit_test

import (
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/internal/yamledit"
)

const file = `# Of the desk.
version: 1 # always

capabilities:
  # The first.
  - name: a
    description: "x"   # quoted

    idempotent: yes-no

  # The second.
  - {name: b}

# What it runs.
skills:
    b: {process: {command: [b]}}
# The end.
`

func edit(t *testing.T, text string, change func(f *yamledit.File) error) string {
	t.Helper()
	f, err := yamledit.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := change(f); err != nil {
		t.Fatal(err)
	}
	return string(f.Bytes())
}

// What an edit is not about keeps its bytes.
func TestEdits(t *testing.T) {
	item := yamledit.Map("name", yamledit.Text("c"), "n", yamledit.Word("1"))
	for name, tt := range map[string]struct {
		text   string
		change func(f *yamledit.File) error
		want   string
	}{
		"append an item": {file, func(f *yamledit.File) error { return f.AppendItem("capabilities", item) },
			file[:indexOf("\n# What it runs")] + "  - name: c\n    n: 1\n" + file[indexOf("\n# What it runs"):]},
		"to a list in flow style": {"a: [x, {name: b}] # why\nb: 1\n", func(f *yamledit.File) error { return f.AppendItem("a", item) },
			"# why\na:\n- x\n- {name: b}\n- name: c\n  n: 1\nb: 1\n"},
		"to no list": {"b: 1\n", func(f *yamledit.File) error { return f.AppendItem("a", item) }, "b: 1\na:\n- name: c\n  n: 1\n"},
		"change an item": {file, func(f *yamledit.File) error {
			return f.EditItem("capabilities", 0, func(n *yaml.Node) {
				yamledit.Set(n, "description", yamledit.Text("true"))
				yamledit.Set(n, "idempotent", nil)
				yamledit.Set(n, "more", yamledit.Text("a: b"))
			})
		}, file[:indexOf("  - name: a")] + "  - name: a\n    description: \"true\" # quoted\n    more: 'a: b'\n" + file[indexOf("\n  # The second"):]},
		"change the last one": {file, func(f *yamledit.File) error {
			return f.EditItem("capabilities", 1, func(n *yaml.Node) { yamledit.Set(n, "x", yamledit.Word("2")) })
		}, file[:indexOf("  - {name: b}")] + "  - {name: b, x: 2}\n" + file[indexOf("\n# What it runs"):]},
		"add an entry": {file, func(f *yamledit.File) error {
			return f.SetEntry("skills", "c", yamledit.Map("mcp", yamledit.Map("tool", yamledit.Text("c"))))
		}, file[:indexOf("# The end.")] + "    c:\n      mcp:\n        tool: c\n# The end.\n"},
		"add a key":        {"a: 1", func(f *yamledit.File) error { return f.SetEntry("s", "c", yamledit.Word("2")) }, "a: 1\ns:\n  c: 2\n"},
		"to an empty file": {"", func(f *yamledit.File) error { return f.SetEntry("s", "c", yamledit.Word("2")) }, "s:\n  c: 2\n"},
		"replace an entry": {"s:\n  c: 1 # one\n  d: 2\nt: 3\n", func(f *yamledit.File) error { return f.SetEntry("s", "c", yamledit.Word("9")) }, "s:\n  c: 9 # one\n  d: 2\nt: 3\n"},
	} {
		if got := edit(t, tt.text, tt.change); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// A file that an edit would break, or be lost in, is left as it is.
func TestFilesThatCannotBeEdited(t *testing.T) {
	for _, text := range []string{"{a: 1}\n", "a: 1\n...\n"} {
		f, err := yamledit.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.SetEntry("s", "c", yamledit.Word("2")); err == nil || string(f.Bytes()) != text {
			t.Errorf("%q has become %q, %v", text, f.Bytes(), err)
		}
	}
}

func indexOf(part string) int {
	for i := range file {
		if len(file) >= i+len(part) && file[i:i+len(part)] == part {
			return i
		}
	}
	panic(part)
}

// JSON becomes YAML that agentd reads as the same JSON.
func TestFromJSON(t *testing.T) {
	for _, source := range []string{
		`{"z":1,"a":[1,"x",{"b":[]}],"n":9007199254740993,"f":1.0,"e":1e-7,"s":"true","t":"007","null":null,"y":"yes","empty":{},"b":false}`,
		`{"s":"two\nlines\n","q":"\"'","c":"a # b","u":"\u2028 \ud83d\ude00 \u0007","long":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb cccccccccccccccccccccc: d"," k ":"  "}`,
		`{"$ref":"#/$defs/a","pattern":"^\\d+$","enum":["","~","1.0",null,1.0],"-":"- a","?":"? b","*x":"*y","&z":"!w","%":"@","2024-01-01":"2024-01-01","0x10":"0x10",".inf":".nan"}`,
	} {
		node, err := yamledit.FromJSON([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		text := edit(t, "", func(f *yamledit.File) error { return f.SetEntry("v", "x", node) })
		read, err := strictyaml.Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		want, err := strictyaml.Parse("f.json", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(read.Root().Object().Get("v").Object().Get("x").AppendJSON(nil)); got != string(want.Root().AppendJSON(nil)) {
			t.Errorf("got  %s\nwant %s\nby\n%s", got, want.Root().AppendJSON(nil), text)
		}
	}
	for _, bad := range []string{"", "{", "1 2"} {
		if _, err := yamledit.FromJSON([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
