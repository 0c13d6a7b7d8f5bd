package compat

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"

	"github.com/agentd/agentd/internal/output"
)

// WriteText writes the report for people, one finding a line and a witness below
// it. Text that comes from a document is made printable first, since a terminal
// may show it.
func (r *Report) WriteText(w io.Writer, colors output.Colors) error {
	if len(r.Findings) == 0 {
		_, err := fmt.Fprintf(w, "%s no differences\n", colors.Good("✓"))
		return err
	}
	breaking := 0
	for _, f := range r.Findings {
		mark := colors.Good("  compatible")
		if f.Breaking {
			mark = colors.Bad("✗ BREAKING  ")
			breaking++
		}
		where := f.Capability
		if f.Side != "" {
			where += " " + string(f.Side)
		}
		if f.Path != "" {
			where += " " + f.Path
		}
		if _, err := fmt.Fprintf(w, "%s [%s] %s: %s\n", mark, f.Rule, output.Printable(where), output.Printable(f.Message)); err != nil {
			return err
		}
		if f.Witness != nil {
			if _, err := fmt.Fprintf(w, "              for example: %s\n", output.Printable(string(f.Witness))); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "%d differences, %d of them breaking\n", len(r.Findings), breaking)
	return err
}

// WriteSARIF writes the report as SARIF 2.1.0 (OASIS), against the file at uri.
// Code review tools show breaking findings as errors and the others as notes.
func (r *Report) WriteSARIF(w io.Writer, uri, version string) error {
	type text struct {
		Text string `json:"text"`
	}
	type rule struct {
		ID string `json:"id"`
	}
	type location struct {
		PhysicalLocation struct {
			ArtifactLocation struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
		} `json:"physicalLocation"`
	}
	type result struct {
		RuleID    string     `json:"ruleId"`
		Level     string     `json:"level"`
		Message   text       `json:"message"`
		Locations []location `json:"locations"`
	}
	results, rules, seen := []result{}, []rule{}, map[string]bool{}
	for _, f := range r.Findings {
		level := "note"
		if f.Breaking {
			level = "error"
		}
		// Each rule that a result refers to is declared once, in the driver.
		if !seen[f.Rule] {
			seen[f.Rule] = true
			rules = append(rules, rule{ID: f.Rule})
		}
		var at location
		at.PhysicalLocation.ArtifactLocation.URI = uri
		results = append(results, result{RuleID: f.Rule, Level: level, Message: text{f.sentence()}, Locations: []location{at}})
	}
	return output.WriteJSON(w, output.JSON, map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"version": "2.1.0",
		"runs": []any{map[string]any{
			"tool":    map[string]any{"driver": map[string]any{"name": "agentd", "version": version, "rules": rules}},
			"results": results,
		}},
	})
}

// sentence renders the finding in one line, for formats with one text a finding.
func (f *Finding) sentence() string {
	s := f.Capability
	if f.Side != "" {
		s += " " + string(f.Side)
	}
	if f.Path != "" {
		s += " " + f.Path
	}
	s += ": " + f.Message
	if f.Witness != nil {
		s += "; for example " + string(f.Witness)
	}
	return s
}

// WriteJUnit writes the report as JUnit XML, the format that CI servers read: one
// test case a finding, failed if it is breaking.
func (r *Report) WriteJUnit(w io.Writer) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
	}
	type testcase struct {
		Name      string   `xml:"name,attr"`
		ClassName string   `xml:"classname,attr"`
		Failure   *failure `xml:"failure,omitempty"`
	}
	type testsuite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	suite := testsuite{Name: "agentd capabilities", Tests: len(r.Findings)}
	for _, f := range r.Findings {
		c := testcase{Name: f.Rule + " " + f.Path, ClassName: f.Capability + "." + string(f.Side)}
		if f.Breaking {
			suite.Failures++
			c.Failure = &failure{Message: f.sentence(), Type: f.Rule}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// WriteJSON writes an object {compatible, findings}, on one line or indented as
// f says.
func (r *Report) WriteJSON(w io.Writer, f output.Format) error {
	return output.WriteJSON(w, f, struct {
		Compatible bool            `json:"compatible"`
		Findings   json.RawMessage `json:"findings"`
	}{!r.Breaking(), r.findingsJSON()})
}

func (r *Report) findingsJSON() json.RawMessage {
	data, err := json.Marshal(r.Findings)
	if err != nil {
		return json.RawMessage("[]") // unreachable: Explain's witnesses are JSON
	}
	return data
}
