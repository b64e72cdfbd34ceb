package health

import (
	"fmt"
	"maps"
	"slices"
)

// Voters says who votes in etcd, and what may still be lost.
type Voters struct {
	// Known: some replica says who the members are.
	Known bool `json:"known"`
	Count int  `json:"count"`
	// Well is how many of them take part now.
	Well int `json:"well"`
	// Survives is how many further voters may fail at any moment; -1: there is no quorum now.
	Survives int `json:"survives"`
	// KeepZones are the zones of which none may be lost.
	KeepZones []string `json:"keepZones"`
}

func (j *judgement) countVoters() Voters {
	v := Voters{KeepZones: []string{}}
	if j.authority < 0 {
		return v
	}
	v.Known = true
	inZone := map[string]int{}
	for _, m := range j.Reports[j.authority].Members {
		if m.Role == "voter" {
			v.Count++
		}
	}
	for _, r := range j.replicas {
		if r.Role == "voter" && r.votes() {
			v.Well++
			inZone[r.Zone]++
		}
	}
	quorum := v.Count/2 + 1
	v.Survives = max(-1, v.Well-quorum)
	for _, zone := range slices.Sorted(maps.Keys(inZone)) {
		if v.Survives >= 0 && v.Well-inZone[zone] < quorum {
			v.KeepZones = append(v.KeepZones, zone)
		}
	}
	return v
}

func (v Voters) text() string {
	count := fmt.Sprintf("%d of %d voters take part", v.Well, v.Count)
	switch {
	case v.Count == 1 && v.Well == 1:
		return "its only voter takes part, and it may not fail"
	case v.Survives < 0:
		return count + ", which is no quorum"
	case v.Survives == 0:
		return count + ", and none of them may fail"
	case v.Survives == 1:
		return count + ", and one more may fail"
	}
	return fmt.Sprintf("%s, and %d more may fail", count, v.Survives)
}

// ZonesText says which zones may not be lost; empty: any one may.
func (v Voters) ZonesText() string {
	switch n := len(v.KeepZones); {
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("Zone %s may not be lost.", v.KeepZones[0])
	}
	return fmt.Sprintf("None of the zones %s may be lost.", listed(v.KeepZones))
}
