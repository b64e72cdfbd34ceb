// plaincopy is what a copy of etcd's state is measured against: one file, over one TLS connection between the same two VMs with the same
// certificates, to a file on the same disk, with fsync.
//
//	plaincopy serve PKI ADDRESS FILE    sends the file to whoever connects first
//	plaincopy fetch PKI ADDRESS TO      writes it, and prints bytes and seconds
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"

	"github.com/quorate/quorate/certs"
)

func main() {
	run := map[string]func(*tls.Config, string, string) error{"serve": serve, "fetch": fetch}
	if len(os.Args) != 5 || run[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: plaincopy serve|fetch PKI ADDRESS FILE")
		os.Exit(2)
	}
	conf, err := peerTLS(os.Args[2], os.Args[1] == "serve")
	if err == nil {
		err = run[os.Args[1]](conf, os.Args[3], os.Args[4])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plaincopy: "+err.Error())
		os.Exit(1)
	}
}

// peerTLS is how etcd's members speak to each other.
func peerTLS(pki string, server bool) (*tls.Config, error) {
	f := certs.Files{Dir: pki}
	info := transport.TLSInfo{CertFile: f.Leaf(certs.EtcdPeerLeaf), KeyFile: f.Leaf(certs.EtcdPeerLeaf), TrustedCAFile: f.CA(certs.EtcdPeer), ClientCertAuth: true}
	if server {
		return info.ServerConfig()
	}
	return info.ClientConfig()
}

func serve(conf *tls.Config, address, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	l, err := tls.Listen("tcp", address, conf)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println("listening")
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = io.Copy(conn, in)
	return err
}

func fetch(conf *tls.Config, address, to string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	conf.ServerName = host
	begin := time.Now()
	conn, err := tls.Dial("tcp", address, conf)
	if err != nil {
		return err
	}
	defer conn.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	n, err := io.Copy(out, conn)
	if err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	fmt.Println(n, time.Since(begin).Seconds())
	return nil
}
