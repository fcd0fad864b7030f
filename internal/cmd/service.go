package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ServiceCmd makes the server a service of systemd.
type ServiceCmd struct {
	Install   ServiceInstallCmd   `cmd:"" help:"Write the unit and enable it."`
	Uninstall ServiceUninstallCmd `cmd:"" help:"Disable the unit and remove it."`
	Start     ServiceStartCmd     `cmd:"" help:"Start the service."`
	Stop      ServiceStopCmd      `cmd:"" help:"Stop the service."`
	Restart   ServiceRestartCmd   `cmd:"" help:"Restart the service."`
	Status    ServiceStatusCmd    `cmd:"" help:"Tell how the service is."`
}

// unitName is the unit that install writes.
const unitName = "waymark.service"

// errNoSystemd is told where there is nothing to be a service of.
var errNoSystemd = errors.New("there is no systemctl here: run waymark serve -c FILE under the service manager that there is")

// serviceFolder is where units go; Root is for looking at what would be written.
type serviceFolder struct {
	Root string `hidden:"" help:"Write below this folder, and tell systemd nothing."`
}

func (f serviceFolder) unit() string {
	return filepath.Join("/", f.Root, "etc/systemd/system", unitName)
}

// systemctl tells systemd, unless nothing is to be told.
func (f serviceFolder) systemctl(stdout io.Writer, args ...string) error {
	if f.Root != "" {
		return nil
	}
	path, err := exec.LookPath("systemctl")
	if err != nil {
		return errNoSystemd
	}
	c := exec.Command(path, args...)
	c.Stdout, c.Stderr = stdout, stdout
	if err := c.Run(); err != nil {
		return fmt.Errorf("systemctl %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// ServiceInstallCmd writes the unit.
type ServiceInstallCmd struct {
	serviceFolder
	Config string `short:"c" required:"" placeholder:"FILE" help:"Configuration file."`
	Dir    string `short:"d" placeholder:"DIR" help:"Folder that relative paths start from; the present one without it."`
}

// Run writes the unit, with absolute paths, and enables it.
func (c *ServiceInstallCmd) Run(stdout io.Writer) error {
	if _, err := exec.LookPath("systemctl"); err != nil && c.Root == "" {
		return errNoSystemd
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return fmt.Errorf("reading -d: %w", err)
	}
	file := c.Config
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("reading -c: %w", err)
	}
	text := fmt.Sprintf(`[Unit]
Description=Waymark DNS server
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
ExecStart=%q serve -c %q -d %q
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
`, program, file, dir)
	if err := os.MkdirAll(filepath.Dir(c.unit()), 0o755); err != nil {
		return fmt.Errorf("writing the unit: %w", err)
	}
	if err := os.WriteFile(c.unit(), []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the unit: %w", err)
	}
	_, _ = fmt.Fprintf(stdout, "wrote %s\n", c.unit())
	if err := c.systemctl(stdout, "daemon-reload"); err != nil {
		return err
	}
	return c.systemctl(stdout, "enable", unitName)
}

// ServiceUninstallCmd removes the unit.
type ServiceUninstallCmd struct{ serviceFolder }

// Run stops and disables the service and removes its unit.
func (c *ServiceUninstallCmd) Run(stdout io.Writer) error {
	if err := c.systemctl(stdout, "disable", "--now", unitName); err != nil {
		return err
	}
	if err := os.Remove(c.unit()); err != nil {
		return fmt.Errorf("removing the unit: %w", err)
	}
	_, _ = fmt.Fprintf(stdout, "removed %s\n", c.unit())
	return c.systemctl(stdout, "daemon-reload")
}

// ServiceStartCmd starts the service.
type ServiceStartCmd struct{}

// Run hands over to systemctl.
func (c *ServiceStartCmd) Run(stdout io.Writer) error { return handOver(stdout, "start") }

// ServiceStopCmd stops the service.
type ServiceStopCmd struct{}

// Run hands over to systemctl.
func (c *ServiceStopCmd) Run(stdout io.Writer) error { return handOver(stdout, "stop") }

// ServiceRestartCmd restarts the service.
type ServiceRestartCmd struct{}

// Run hands over to systemctl.
func (c *ServiceRestartCmd) Run(stdout io.Writer) error { return handOver(stdout, "restart") }

// ServiceStatusCmd tells how the service is.
type ServiceStatusCmd struct{}

// Run hands over to systemctl.
func (c *ServiceStatusCmd) Run(stdout io.Writer) error { return handOver(stdout, "status") }

func handOver(stdout io.Writer, what string) error {
	return serviceFolder{}.systemctl(stdout, what, unitName)
}
