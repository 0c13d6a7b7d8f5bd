package natsauth

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport"
)

// A claim is a member's use of a subject.
type claim struct {
	subject, member string
	order           int
}

// claims are the subjects that members use. A fleet has many, so each is looked up.
type claims struct {
	count     int
	of, below map[string][]claim // by the subject itself, and by its parent
}

// add adds a claim, and returns those of other members that overlap with it, oldest first:
// on one of the two subjects each would receive the other's messages. An agent subscribes
// to its subject and to those one part below.
func (c *claims) add(subject, member string) (overlapping []claim) {
	above := parent(subject)
	overlapping = slices.Concat(c.of[subject], c.of[above], c.below[subject])
	overlapping = slices.DeleteFunc(overlapping, func(other claim) bool { return other.member == member })
	slices.SortFunc(overlapping, func(a, b claim) int { return a.order - b.order })
	added := claim{subject, member, c.count}
	c.count++
	c.of[subject] = append(c.of[subject], added)
	c.below[above] = append(c.below[above], added)
	return overlapping
}

// checkSubjects finds everything by which the rules of one member would give it access
// to another's requests.
func checkSubjects(f *fleet.Fleet) error {
	var errs []error
	used := claims{of: map[string][]claim{}, below: map[string][]claim{}}
	services := map[string]string{} // members by service name
	for _, m := range f.Members {
		requests := requestSubjects(m)
		for _, subject := range requests {
			if fault := subjectFault(subject); fault != "" {
				errs = append(errs, fmt.Errorf("%s: the requests subject %q %s", m.Capabilities.Path, subject, fault))
				continue
			}
			for _, other := range used.add(subject, m.ID) {
				errs = append(errs, fmt.Errorf("agents %s and %s share subjects: %s and %s; give each a subject that is not the other's nor right below it",
					other.member, m.ID, other.subject, subject))
			}
		}
		if other, taken := services[ServiceName(m.ID)]; taken {
			errs = append(errs, fmt.Errorf("agents %s and %s have the same service name %s; rename one", other, m.ID, ServiceName(m.ID)))
		}
		services[ServiceName(m.ID)] = m.ID
		for _, p := range m.Peers {
			for _, subject := range natsSubjects(p.Transports) {
				if fault := subjectFault(subject); fault != "" {
					errs = append(errs, fmt.Errorf("%s:%d: the requests subject %q of %s %s", m.PeersFile, p.Position.Line, subject, p.Address, fault))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// subjectFault returns why no rule can be made for a subject, or "". A wildcard would
// give access to what others own, and the subjects of NATS itself belong to no agent.
func subjectFault(subject string) string {
	switch {
	case strings.Contains(subject, "${"):
		return "is a reference, which only the running agent can resolve: write the subject itself"
	case strings.HasPrefix(subject, "_INBOX.") || strings.HasPrefix(subject, "$"):
		return "belongs to NATS: choose another"
	case transport.CheckTopic("", subject) != nil:
		return "is not a valid NATS subject"
	}
	return ""
}

// parent is the subject that subject is right below, or "" for one that is below none.
func parent(subject string) string {
	if i := strings.LastIndexByte(subject, '.'); i >= 0 {
		return subject[:i]
	}
	return ""
}
