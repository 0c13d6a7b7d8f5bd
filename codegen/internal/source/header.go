package source

import "strings"

const (
	// command is in the first line of every generated file, whatever the
	// language makes of the rest of it.
	command = "agentd capabilities gen"
	// owner begins the second line, which names the agent.
	owner = "Source: agent://"
)

// Header returns the lines below the one that marks a file as generated: whose
// capabilities it holds, and their digest.
func Header(agentID string, capabilities []string, digest string) []string {
	return []string{
		owner + agentID,
		"Capabilities: " + strings.Join(capabilities, ", "),
		"Digest: " + digest,
	}
}

// Owner returns the id of the agent that a generated file's header names, or
// "" for a file that was not generated.
func Owner(content []byte) string {
	// Files of users lie beside generated ones. Only a file that this command wrote
	// may be replaced.
	marker, rest, _ := strings.Cut(string(content), "\n")
	if !strings.Contains(marker, command) {
		return ""
	}
	line, _, _ := strings.Cut(rest, "\n")
	_, id, _ := strings.Cut(strings.TrimSuffix(line, "\r"), owner)
	return id
}
