package systemd

import (
	"embed"
	"io/fs"
)

//go:embed units
var units embed.FS

// Units are the unit files that an image installs in /etc/systemd/system, by file name.
func Units() (fs.FS, error) { return fs.Sub(units, "units") }
