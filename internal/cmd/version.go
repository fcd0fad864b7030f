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
	_, err := fmt.Fprintf(stdout, "waymark %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version is that of the build.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(unknown)"
}
