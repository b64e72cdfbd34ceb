package main

import (
	"os/user"
	"strconv"

	"github.com/quorate/quorate/supervisor"
)

// systemAccount is the user of a name, as /etc/passwd has it. One that is root is none: it would confine nothing.
func systemAccount(name string) (supervisor.Account, bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return supervisor.Account{}, false
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	return supervisor.Account{UID: uint32(uid), GID: uint32(gid)}, errUID == nil && errGID == nil && uid != 0
}
