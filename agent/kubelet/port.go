package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// serverPort is where every kubelet serves logs and commands. With the health port it is opened when the start-up is
// over.
const serverPort = 10250

// HealthPort is the kubelet's, on loopback.
type HealthPort struct {
	Port int
}

// Ask asks for the kubelet's health. An answer of any kind shows that it lives.
func (p HealthPort) Ask(ctx context.Context) (connected bool, err error) {
	address := fmt.Sprintf("127.0.0.1:%d", p.Port)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return true, err
	}
	response, err := client.Do(request)
	if err != nil {
		return true, err
	}
	return true, response.Body.Close()
}

// Listening asks the kernel who listens, so a packet filter hides nothing. The answer has all connections of the VM, so
// it is not for each second.
func (p HealthPort) Listening() bool {
	return listening(p.Port) || listening(serverPort)
}

func listening(port int) bool {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(b) {
			// sl local_address rem_address st …; 0A is LISTEN
			fields := strings.Fields(string(line))
			if len(fields) > 3 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				return true
			}
		}
	}
	return false
}
