// Package action holds the commands `agentd action …`: actions are what an agent does for
// its callers (package action of this module).
package action
