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
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
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
	var port, leaf, servers, authority, client, delay string
	known := map[string]*string{"secure-port": &port, "tls-cert-file": &leaf, "etcd-servers": &servers,
		"etcd-cafile": &authority, "etcd-certfile": &client,
		"shutdown-delay-duration": &delay}
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
	answers.HandleFunc("/api/v1/namespaces/default", func(w http.ResponseWriter, r *http.Request) {
		if _, err := etcd.Get(r.Context(), "namespaces"); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := &http.Server{Addr: ":" + port, Handler: answers}
	if _, err := os.Stat(filepath.Join(filepath.Dir(os.Args[0]), standInOrder)); err == nil {
		return goesInOrder(server, leaf, delay)
	}
	return server.ListenAndServeTLS(leaf, leaf)
}

// standInOrder is a file next to the stand-in with which it takes its time to stop, as kube-apiserver does. Without it
// a signal ends it at once, which saves the cases their time.
const standInOrder = "in-order"

// goesInOrder serves until it is asked to stop, and then as kube-apiserver does: it says that it is not ready, and
// serves for the delay; from then on everybody is told to come again, on another connection; then it ends what is idle.
func goesInOrder(server *http.Server, leaf, lasts string) error {
	delay, err := time.ParseDuration(lasts)
	if err != nil {
		return err
	}
	var going, refusing atomic.Bool
	answers := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case going.Load() && r.URL.Path == "/readyz":
			http.Error(w, "shutting down", http.StatusInternalServerError)
		case refusing.Load():
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			http.Error(w, "shutting down", http.StatusTooManyRequests)
		default:
			answers.ServeHTTP(w, r)
		}
	})
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServeTLS(leaf, leaf) }()
	select {
	case err := <-failed:
		return err
	case <-asked:
	}
	going.Store(true)
	time.Sleep(delay)
	refusing.Store(true)
	time.Sleep(time.Second) // requests in flight end meanwhile
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return err
	}
	os.Exit(0)
	return nil
}

// keepRole keeps a role as it is applied, until the VM's power goes: the agent grants its own, and looks for them
// later. Nothing is written to etcd, whose entries the cases count. Where the apiserver has a user of its own, as in
// VMs of the image, that one may write to /tmp alone.
func keepRole(w http.ResponseWriter, r *http.Request) {
	folder := "/run"
	if os.Getuid() != 0 {
		folder = "/tmp"
	}
	path := folder + "/stand-in" + strings.ReplaceAll(r.URL.Path, "/", "-")
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
