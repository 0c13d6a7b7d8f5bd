package main

import (
	"cmp"
	"math"
)

// A shape is a fleet as the formulas see it.
type shape struct {
	Agents    int // N
	Servers   int // K
	Peers     int // P: peers that each agent lists
	Witnesses int // W: witnesses of each audit log
}

// What one agent holds at its server, by the package that subscribes.
const (
	// ownSubjects are the subjects that one agent alone subscribes to: requests, .control,
	// .capabilities and .witness (rpc/callee Listen), its reply inbox (rpc/caller, by
	// transport/nats OpenInbox), and its service by name, by instance and by subject
	// (transport/nats/discovery Announce).
	ownSubjects = 8
	// sharedSubjects are the subjects that all agents subscribe to: $SRV.* (discovery).
	sharedSubjects = 1
)

// Sizes in bytes, as a server counts them: without the line of the protocol. They depend on
// the length of names, and on schemas a little.
const (
	// payloadBytes is the payload of a call and of its reply, callFields all else in both.
	payloadBytes = 200
	callFields   = 1012
	// statsBytes is an answer to $SRV.STATS of an agent with one capability.
	statsBytes = 555
	// witnessBytes is what one witness and one log send each other for a checkpoint.
	witnessBytes = 3388
)

// Bound of the relative error of a prediction.
const tolerance = 0.15

func (s shape) perServer() float64 { return float64(s.Agents) / float64(s.Servers) }

// callBytes are those of a request and its reply.
func callBytes() float64 { return 2*payloadBytes + callFields }

// joinMessages are those of one agent that starts among others: two times two
// questions for agents of other fleets, on its subject and of its name, of which it answers
// the second two itself, and the notice of its contract; and the first checkpoint of its log, which each of its witnesses records, so that
// their logs have a new checkpoint as well.
func (s shape) joinMessages() float64 {
	return 7 + s.checkpointMessages()*float64(1+s.Witnesses)
}

// checkpointMessages are 4·W: each witness is asked what it has, and then shown the rest.
func (s shape) checkpointMessages() float64 { return 4 * float64(s.Witnesses) }

// clientSubscriptions is N·(9+P): what all clients hold.
func (s shape) clientSubscriptions() float64 {
	return float64(s.Agents * (ownSubjects + sharedSubjects + s.Peers))
}

// serverSubscriptions is what one server of the cluster holds: those of its own clients, and
// for each other server one for each subject that somebody there subscribes to. Agents of
// one server that follow the same peer are one subscription to the others.
func (s shape) serverSubscriptions() float64 {
	n := s.perServer()
	local := n * float64(ownSubjects+sharedSubjects+s.Peers)
	followed := math.Min(float64(s.Agents), n*float64(s.Peers))
	remote := n*ownSubjects + sharedSubjects + followed
	return local + float64(s.Servers-1)*remote
}

// A row is one prediction and what was counted.
type row struct {
	Name string `json:"name"`
	// Formula is the text of the page.
	Formula   string  `json:"formula"`
	Predicted float64 `json:"predicted"`
	Measured  float64 `json:"measured"`
	Unit      string  `json:"unit"`
	Observed  bool    `json:"observed"` // without a prediction
}

// off is the relative error, 0 for what has no prediction.
func (r row) off() float64 {
	if r.Observed {
		return 0
	}
	return math.Abs(r.Measured-r.Predicted) / cmp.Or(math.Abs(r.Predicted), 1)
}

// holds reports whether the prediction is good.
func (r row) holds() bool { return r.off() <= tolerance }

// crossing is the share of calls whose ends are at different servers: (K−1)/K, but for
// what is exact of fleets whose number of agents or peers is no multiple of K.
func (s shape) crossing() float64 {
	crosses := 0
	for i := range s.Agents {
		for k := range s.Peers {
			if i%s.Servers != s.peerOf(i, k)%s.Servers {
				crosses++
			}
		}
	}
	return float64(crosses) / float64(s.Agents*s.Peers)
}
