package show

import (
	"fmt"
	"path"

	"github.com/quorate/quorate/fleet"
)

// Head is what stands above the columns of Rows.
var Head = []string{"NAME", "ZONE", "VM", "ETCD", "READY", "IMAGE", "DATA DISK"}

// ReadyColumn is the column that says whether a replica is ready.
const ReadyColumn = 4

// Rows are the replicas of a listing, one a row.
func Rows(l fleet.Listing) (out [][]string) {
	for _, r := range l.Replicas {
		out = append(out, []string{r.Name, r.Zone, orNone(r.VM), member(r), ready(r), orNone(last(r.Image)),
			orNone(r.DataDisk)})
	}
	return out
}

// Notes says what else there is of a cluster, or why something is not known.
func Notes(l fleet.Listing, out Text) {
	if l.Unknown != "" {
		out("", fmt.Sprintf("Who the members are is not known: %s.", l.Unknown))
	}
	for _, d := range l.SpareDisks {
		out("", fmt.Sprintf("Data disk %s in %s (%s) belongs to no VM.", d.Name, d.Zone, d.ID))
	}
}

func member(r fleet.ListedReplica) string {
	switch {
	case r.Order != 0:
		return fmt.Sprintf("%s, leaves by order %d", r.Role, r.Order)
	case r.Leads:
		return string(r.Role) + ", leads"
	}
	return string(r.Role)
}

func ready(r fleet.ListedReplica) string {
	switch {
	case r.Role == fleet.RoleUnknown:
		return "unknown"
	case r.Ready:
		return "yes"
	}
	return "no"
}

// last is the last part of a link.
func last(link string) string {
	if link == "" {
		return ""
	}
	return path.Base(link)
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
