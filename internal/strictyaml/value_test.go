package strictyaml_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/strictyaml"
)

// Each accessor says what it expected and what it got, at the value.
func TestAccessorFaults(t *testing.T) {
	type value = strictyaml.Value
	for _, c := range []struct {
		yaml string
		read func(value)
		want string // after the place; "" is no fault
	}{
		{`x`, func(v value) { _ = v.String() }, ""},
		{`""`, func(v value) { _ = v.String() }, ""},
		{`""`, func(v value) { v.Text() }, "the string must not be empty"},
		{`1.10`, func(v value) { v.Text() }, "expected a string but got a number (quote the value)"},
		{`true`, func(v value) { _ = v.String() }, "expected a string but got a boolean (quote the value)"},
		{`~`, func(v value) { _ = v.String() }, "expected a string but got null"},
		{`[a]`, func(v value) { _ = v.String() }, "expected a string but got a list"},
		{`{a: 1}`, func(v value) { _ = v.String() }, "expected a string but got a mapping"},
		{`x`, func(v value) { v.Bool() }, "expected a boolean but got a string"},
		{`x`, func(v value) { v.Int(0, 1) }, "expected a number but got a string"},
		{`0`, func(v value) { v.Int(0, 1) }, ""},
		{`1`, func(v value) { v.Int(0, 1) }, ""},
		{`2`, func(v value) { v.Int(0, 1) }, "expected a whole number from 0 to 1"},
		{`-1`, func(v value) { v.Int(0, 1<<63-1) }, "expected a whole number of 0 or more"},
		{`1.5`, func(v value) { v.Int(0, 9) }, "expected a whole number"},
		{`1.5`, func(v value) { v.Float(0, 1.5) }, ""},
		{`1.6`, func(v value) { v.Float(0, 1.5) }, "expected a number from 0 to 1.5"},
		{`-0.1`, func(v value) { v.Float(0, 1.5) }, "expected a number from 0 to 1.5"},
		{`1e400`, func(v value) { v.Float(0, 1.5) }, "expected a number from 0 to 1.5"},
		{`x`, func(v value) { v.Float(0, 1) }, "expected a number but got a string"},
		{`0`, func(v value) { v.Millis(time.Second) }, "expected a whole number from 1 to 1000"},
		{`1001`, func(v value) { v.Millis(time.Second) }, "expected a whole number from 1 to 1000"},
		{`low`, func(v value) { v.Enum("low", "high") }, ""},
		{`hgih`, func(v value) { v.Enum("low", "high") }, `expected one of low, high (did you mean "high"?)`},
		{`other`, func(v value) { v.Enum("low", "high") }, "expected one of low, high"},
		{`1`, func(v value) { v.Enum("low") }, "expected a string but got a number (quote the value)"},
		{`{}`, func(v value) { v.List() }, "expected a list but got a mapping"},
		{`[]`, func(v value) { v.AtLeastOne("peer").List() }, "expected at least one peer"},
		{`[x]`, func(v value) { v.AtLeastOne("peer").List() }, ""},
		{`[]`, func(v value) { v.Entries() }, "expected a mapping but got a list"},
		{`[]`, func(v value) { v.StringMap() }, "expected a mapping but got a list"},
		{`[]`, func(v value) { v.Object().Done() }, "expected a mapping but got a list"},
		{`x`, func(v value) { v.Texts() }, "expected a list but got a string"},
	} {
		f, err := strictyaml.Parse("f.yaml", []byte("k: "+c.yaml))
		if err != nil {
			t.Fatalf("%s: %v", c.yaml, err)
		}
		c.read(f.Root().Object().Get("k"))
		want := ""
		if c.want != "" {
			want = "f.yaml:1:4: /k: " + c.want
		}
		got := ""
		if err := f.Err(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", c.yaml, got, want)
		}
	}
}

// A key that is not there reads as nothing, without a fault, by every accessor.
func TestAbsentValues(t *testing.T) {
	f, err := strictyaml.Parse("f.yaml", []byte("k: 1"))
	if err != nil {
		t.Fatal(err)
	}
	root := f.Root().Object()
	v := root.Get("absent")
	if v.Present() || v.Kind() != strictyaml.Absent || v.Kind().String() != "nothing" {
		t.Errorf("kind = %s", v.Kind())
	}
	if v.String() != "" || v.Text() != "" || v.Bool() || v.Int(1, 2) != 0 || v.Float(1, 2) != 0 || v.Millis(time.Hour) != 0 || v.Enum("a") != "" ||
		v.List() != nil || v.Texts() != nil || v.Entries() != nil || v.StringMap() != nil || v.AtLeastOne("x").Present() || len(v.AppendJSON(nil)) != 0 {
		t.Error("an absent value is not empty")
	}
	o := v.Object()
	o.Need("inner").Text()
	o.Done()
	if p := v.Position(); p.Pointer != "/absent" || p.Line != 1 || p.Column != 1 {
		t.Errorf("it is at %+v, want the place of the mapping that lacks it", p)
	}
	if err := f.Err(); err != nil {
		t.Errorf("faults of what is not there: %v", err)
	}
	if root.Value().Kind() != strictyaml.Map {
		t.Error("the object lost its value")
	}
}

func TestNeed(t *testing.T) {
	f, err := strictyaml.Parse("f.yaml", []byte("outer:\n  a: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := f.Root().Object().Get("outer").Object()
	o.Need("a").Int(0, 9)
	o.Need("b").Text()
	o.Done()
	if want := `f.yaml:1:1: /outer: the key "b" is missing`; f.Err() == nil || f.Err().Error() != want {
		t.Errorf("got %v, want %s", f.Err(), want)
	}
}

func TestUnknownKeys(t *testing.T) {
	f, err := strictyaml.Parse("f.yaml", []byte("nmae: a\nx-mine: 1\nother: 2\nzzz: 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := f.Root().Object()
	o.Get("name")
	o.PassOver("other")
	o.PassOverPrefix("x-")
	o.Done()
	want := "f.yaml:1:1: /nmae: unknown key \"nmae\" (did you mean \"name\"?)\n" +
		"f.yaml:4:1: /zzz: unknown key \"zzz\" (known keys: name, other)"
	if f.Err() == nil || f.Err().Error() != want {
		t.Errorf("got\n%v\nwant\n%s", f.Err(), want)
	}
}

// Pointers and places of items, entries and what is inside them.
func TestPlacesOfItemsAndEntries(t *testing.T) {
	f, err := strictyaml.Parse("f.yaml", []byte("list:\n- a\n- b\nmap:\n  x/y: one\n  z~: two\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := f.Root().Object()
	items := o.Get("list").List()
	if p := items[1].Position(); len(items) != 2 || p.Pointer != "/list/1" || p.Line != 3 || p.Column != 3 {
		t.Errorf("the second of %d items is at %+v", len(items), p)
	}
	if got := strings.Join(o.Get("list").Texts(), " "); got != "a b" {
		t.Errorf("texts %q", got)
	}
	entries := o.Get("map").Entries()
	if len(entries) != 2 || entries[0].Name != "x/y" || entries[0].Value.Position().Pointer != "/map/x~1y" || entries[1].Value.Position().Pointer != "/map/z~0" {
		t.Errorf("entries %+v", entries)
	}
	if m := o.Get("map").StringMap(); len(m) != 2 || m["x/y"] != "one" || m["z~"] != "two" {
		t.Errorf("map %v", m)
	}
	if got := string(o.Get("map").AppendJSON([]byte("x"))); got != `x{"x/y":"one","z~":"two"}` {
		t.Errorf("JSON %s", got)
	}
}
