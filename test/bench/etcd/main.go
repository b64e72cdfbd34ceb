// etcd is etcd's own program with the libraries and the toolchain of quorate, for the masters by hand: what differs
// from the etcd that quorate embeds is quorate's then, and nothing of another release of Go or gRPC.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
