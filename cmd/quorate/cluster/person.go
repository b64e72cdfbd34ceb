package cluster

import (
	"os"
	"os/user"
)

// GivenBy names the person in front of this machine, for the audit: what the operating system says, not a proof.
func GivenBy() string {
	who, where := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		where = h
	}
	return who + "@" + where
}
