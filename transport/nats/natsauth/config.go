package natsauth

import (
	"fmt"
	"io"
	"strings"
)

// WriteConfig writes an authorization block in nats-server's configuration language.
// keys are the users' public nkeys by member id, as [Rules.EnsureKeys] returns them;
// each user must have one.
func (r *Rules) WriteConfig(w io.Writer, keys map[string]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Who may call whom in the fleet %s. Written by `agentd fleet nats-config`:\n", quote(r.Fleet))
	b.WriteString("# write it again after the fleet's files have changed.\n")
	if len(r.External) > 0 {
		b.WriteString("# Called by members, and not members themselves, so without a user here:\n")
		for _, a := range r.External {
			fmt.Fprintf(&b, "#   %s\n", a)
		}
	}
	b.WriteString("authorization {\n  users: [\n")
	for _, u := range r.Users {
		key, ok := keys[u.ID]
		if !ok {
			return fmt.Errorf("natsauth: no key for agent %s", u.ID)
		}
		u.write(&b, key)
	}
	b.WriteString("  ]\n}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// write writes one user. A user that may reply gets allow_responses instead of a list of
// subjects: the server then allows the reply subject of each request that it delivers.
func (u *User) write(b *strings.Builder, key string) {
	fmt.Fprintf(b, "    { # agent://%s\n      nkey: %s\n      permissions: {\n", u.ID, key)
	if len(u.Publish) > 0 {
		fmt.Fprintf(b, "        publish: { allow: %s }\n", list(u.Publish))
	} else {
		// To nats-server an empty list of allowed subjects means all.
		b.WriteString("        publish: { deny: [\">\"] }\n")
	}
	fmt.Fprintf(b, "        subscribe: { allow: %s }\n", list(u.Subscribe))
	if u.Responds {
		fmt.Fprintf(b, "        allow_responses: { max: %d, expires: %q }\n", u.Answers, responseLifetime.String())
	}
	b.WriteString("      }\n    }\n")
}

func list(subjects []string) string {
	quoted := make([]string, len(subjects))
	for i, s := range subjects {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes text as nats-server reads it. It drops control characters: a subject has
// none, and a line break would end a comment, so that the rest counts as configuration.
func quote(s string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(clean) + `"`
}
