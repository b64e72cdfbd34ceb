package table

import "fmt"

// PeerPort is where every member listens for its peers: a member is found by its name alone.
const PeerPort = 2380

// PeerURL is the peer URL of a member with this DNS name.
func PeerURL(dnsName string) string { return fmt.Sprintf("https://%s:%d", dnsName, PeerPort) }
