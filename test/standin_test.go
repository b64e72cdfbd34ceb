package test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/replica"
)

// standInIfAsked is the control plane of the cases, which are about etcd's members alone: under the name of the
// apiserver this very program answers the agent's probes, and says that it is ready when etcd answers a linearizable
// read. The real one takes two seconds and 300 MB, and does nothing to a membership but use it, as this does.
func standInIfAsked() {
	if filepath.Base(os.Args[0]) != replica.APIServer {
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("Kubernetes " + controlplane.KubernetesMinor + ".0")
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, standIn(os.Args[1:]))
	os.Exit(1)
}

// standIn serves until it is killed.
func standIn(args []string) error {
	flags := flag.NewFlagSet(replica.APIServer, flag.ExitOnError)
	var port, leaf, servers, authority, client string
	known := map[string]*string{"secure-port": &port, "tls-cert-file": &leaf, "etcd-servers": &servers,
		"etcd-cafile": &authority, "etcd-certfile": &client}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if to, ok := known[name]; ok {
			flags.StringVar(to, name, "", "")
		} else if flags.Lookup(name) == nil {
			flags.String(name, "", "")
		}
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	etcd, err := openEtcd(strings.Split(servers, ","), authority, client)
	if err != nil {
		return err
	}
	answers := http.NewServeMux()
	answers.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	answers.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if _, err := etcd.Get(clientv3.WithRequireLeader(ctx), "health"); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	answers.HandleFunc("/apis/rbac.authorization.k8s.io/", keepRole)
	return http.ListenAndServeTLS(":"+port, leaf, leaf, answers)
}

// keepRole keeps a role as it is applied, until the VM's power goes: the agent grants its own, and looks for them
// later. Nothing is written to etcd, whose entries the cases count.
func keepRole(w http.ResponseWriter, r *http.Request) {
	path := "/run/stand-in" + strings.ReplaceAll(r.URL.Path, "/", "-")
	role, err := io.ReadAll(r.Body)
	if err == nil && r.Method == http.MethodPatch {
		err = os.WriteFile(path, role, 0o600)
	} else if err == nil {
		role, err = os.ReadFile(path)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusNotFound)
		role = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound"}`)
	}
	w.Write(role)
}

func openEtcd(servers []string, authority, pair string) (*clientv3.Client, error) {
	cert, err := tls.LoadX509KeyPair(pair, pair)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	conf := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots, MinVersion: tls.VersionTLS12}
	return clientv3.New(clientv3.Config{Endpoints: servers, TLS: conf, Logger: zap.NewNop()})
}
