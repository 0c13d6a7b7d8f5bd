package export

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agentd/agentd/auditchain"
)

// CEF severities run from 0 to 10.
const (
	cefLow    = 3
	cefMedium = 6
)

// appendCEF appends a line of the Common Event Format, version 0. Values without
// a key of their own go into custom strings; the body is the message.
func appendCEF(dst []byte, origin string, e *auditchain.Entry) []byte {
	level := cefLow
	if severityOf(e.Kind) == medium {
		level = cefMedium
	}
	dst = fmt.Appendf(dst, "CEF:0|agentd|agentd|1|%s|%s|%d|", cefHeader(string(e.Kind)), cefHeader(strings.ReplaceAll(string(e.Kind), "_", " ")), level)
	who, pid := actorOf(e), ""
	if who == nil {
		who = &auditchain.Actor{}
	}
	if who.PID != 0 {
		pid = strconv.Itoa(who.PID)
	}
	fields := []struct{ key, value string }{
		{"rt", strconv.FormatInt(e.Time.UnixMilli(), 10)},
		{"externalId", uid(origin, e)},
		{"cat", string(e.Kind)},
		{"dhost", e.Peer},
		{"request", e.Capability},
		{"cs1", e.Tenant}, {"cs1Label", "tenant"},
		{"cs2", e.Correlation}, {"cs2Label", labelIf(e.Correlation, "correlation")},
		{"cs3", e.Session}, {"cs3Label", labelIf(e.Session, "session")},
		{"cs4", string(e.Side)}, {"cs4Label", labelIf(string(e.Side), "side")},
		{"cs5", e.Hash.String()}, {"cs5Label", "hash"},
		{"cn1", strconv.FormatInt(e.Seq, 10)}, {"cn1Label", "seq"},
		{"suser", who.User}, {"suid", numberOf(who.UID)}, {"spid", pid}, {"sproc", who.Executable},
		{"msg", string(e.Body)},
	}
	separator := ""
	for _, f := range fields {
		if f.value != "" {
			dst = append(dst, separator+f.key+"="+cefValue(f.value)...)
			separator = " "
		}
	}
	return append(dst, '\n')
}

// labelIf returns the label of a custom string, "" if the string has no value.
func labelIf(value, label string) string {
	if value == "" {
		return ""
	}
	return label
}

// cefHeader escapes a header field, which cannot hold line breaks.
func cefHeader(s string) string {
	return strings.NewReplacer(`\`, `\\`, `|`, `\|`, "\n", " ", "\r", " ").Replace(s)
}

// cefValue escapes the value of an extension.
func cefValue(s string) string {
	return strings.NewReplacer(`\`, `\\`, `=`, `\=`, "\n", `\n`, "\r", `\r`).Replace(s)
}
