// Package doctor implements `agentd doctor`: it examines what an agent needs, and says of
// everything that is wrong what to do about it.
//
// Agents are examined whether they run or not: what only a running agent knows, such as the
// contracts of its peers, is skipped for one that does not. Nothing is changed, and nobody
// receives a message because of an examination, but for the questions that a running agent
// asks its peers.
//
// Where to look: doctor.go has the order of the checks, report.go what they say, and each
// other file one part: the files, the running agent, its calls, the broker, rights on the broker, keys,
// the host.
package doctor
