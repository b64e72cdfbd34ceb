package table

import (
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// ParseMemberName is the inverse of replica.Identity.MemberName. It reports false for a name that we did not give,
// the empty one of a member that has not started too.
func ParseMemberName(name string) (p replica.Place, instanceID string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || i == len(name)-1 {
		return replica.Place{}, "", false
	}
	p, ok = replica.ParsePlace(name[:i])
	return p, name[i+1:], ok
}
