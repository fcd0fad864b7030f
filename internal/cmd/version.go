package cmd

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// VersionCmd tells which build this is.
type VersionCmd struct{}

// Run prints one line: version, Go release, platform.
func (c *VersionCmd) Run(stdout io.Writer) error {
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	_, err := fmt.Fprintf(stdout, "waymark %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
