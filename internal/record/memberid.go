package record

import (
	"fmt"
	"strconv"
)

// MemberID is etcd's id of a member or of a cluster, spelled as etcd's tools do: 16 hexadecimal digits at most.
type MemberID uint64

// String is the hexadecimal spelling without leading zeros, as `etcdctl member list` prints it.
func (id MemberID) String() string { return strconv.FormatUint(uint64(id), 16) }

// ParseMemberID is the inverse of MemberID.String.
func ParseMemberID(s string) (MemberID, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("parse member id: %q is not a hexadecimal number of 64 bits", s)
	}
	return MemberID(v), nil
}

// MarshalText spells the id in hexadecimal: JSON numbers lose digits above 2^53.
func (id MemberID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText parses the hexadecimal spelling.
func (id *MemberID) UnmarshalText(b []byte) error {
	v, err := ParseMemberID(string(b))
	if err != nil {
		return err
	}
	*id = v
	return nil
}
