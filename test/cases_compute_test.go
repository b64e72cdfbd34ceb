package test

import (
	"testing"

	"github.com/quorate/quorate/internal/localgce"
)

// A first boot asks the Compute API whom there is to ask, and a zone on the other side of the Earth has no say in that.
func TestAZoneOfAnotherRegionHoldsUpNoFirstBoot(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs, noRecord: true})
	c.must(t, c.SetFault(localgce.Compute, localgce.Fault{Kind: "unreachable", Zone: "europe-west1-d"}))
	c.initRecord(t)
	await(t, "whole", c.membersWhole)
}
