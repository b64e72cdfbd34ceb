package member

import (
	"fmt"
	"os"
	"testing"

	"github.com/quorate/quorate/etcdmember/etcdtest"
)

func TestMain(m *testing.M) {
	if said := os.Getenv(serverEnv); said != "" {
		if err := runServer(said); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	etcdtest.Main(m)
}
