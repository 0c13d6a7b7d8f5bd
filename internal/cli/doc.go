// Package cli holds what the commands of agentd share: the environment that
// they run in, their exit statuses, how they find the fleet and its running
// agents, and how they read payloads.
//
// Each command group has a package of its own below this one, named after the
// group: `agentd audit verify` is the function Verify of the package audit.
// Such a function takes an [Env] and the options that the flags fill in, and
// does everything else. The cobra commands in cmd/agentd hold flags and help
// texts only.
package cli
