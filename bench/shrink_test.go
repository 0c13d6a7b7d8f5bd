package bench_test

import (
	"encoding/json"
	"maps"
	"slices"
)

// shrink takes parts out of a JSON text for as long as what is left still has a property,
// so that a report shows the cause alone.
func shrink(source string, still func(string) bool) string {
	var v any
	if json.Unmarshal([]byte(source), &v) != nil {
		return source
	}
	for tries := 0; tries < 2000; {
		smaller := false
		for candidate := range parts(v) {
			tries++
			if text, err := json.Marshal(candidate); err == nil && still(string(text)) {
				v, source, smaller = candidate, string(text), true
				break
			}
		}
		if !smaller {
			break
		}
	}
	return source
}

// parts yields what is left of a value when one part of it goes, and where a part takes
// the place of the whole.
func parts(v any) func(func(any) bool) {
	return func(yield func(any) bool) {
		switch v := v.(type) {
		case []any:
			for i := range v {
				if !yield(slices.Delete(slices.Clone(v), i, i+1)) || !yield(v[i]) {
					return
				}
			}
			for i := range v {
				for p := range parts(v[i]) {
					c := slices.Clone(v)
					c[i] = p
					if !yield(c) {
						return
					}
				}
			}
		case map[string]any:
			names := slices.Sorted(maps.Keys(v))
			for _, name := range names {
				c := maps.Clone(v)
				delete(c, name)
				if !yield(c) || !yield(v[name]) {
					return
				}
			}
			for _, name := range names {
				for p := range parts(v[name]) {
					c := maps.Clone(v)
					c[name] = p
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}
