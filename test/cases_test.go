package test

import (
	"testing"
	"time"
)

// The cases take their numbers and names from the list of what can befall a member.

func TestCase01ThreeFirstBootsAtOnce(t *testing.T) {
	c := begin(t, plan{subnet: 5, vms: []string{"master-a", "master-b", "master-c"}, bare: true})
	l := c.startWriters(t)
	await(t, "whole", c.membersWhole)
	time.Sleep(5 * time.Second)
	c.invariants(t, l)
}
