// Package skill holds the commands `agentd skill …`, for authors of skills.
package skill
