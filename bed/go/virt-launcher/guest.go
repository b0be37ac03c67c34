package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	v1 "kubevirt.io/api/core/v1"
	cloudinit "kubevirt.io/kubevirt/pkg/cloud-init"
	"kubevirt.io/kubevirt/pkg/config"
)

const (
	private = "/var/run/kubevirt-private/"
	// request is written by the bed's virt-handler as one file.
	request = private + "guest.json"
	// guestEnded tells the first process of a launcher that the guest of start-guest has ended.
	guestEnded = syscall.SIGUSR1
)

type guestRequest struct {
	VMI v1.VirtualMachineInstance `json:"vmi"`
	// Incoming: the guest comes by migration.
	Incoming bool `json:"incoming"`
	// PostCopy: it may run before its memory has come, so start-guest starts it.
	PostCopy bool `json:"postCopy"`
}

// launch waits for the request to start a guest, and ends with the guest, or when it is told to.
func launch() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, guestEnded)
	asked, err := waitRequest(signals)
	if err != nil || asked == nil {
		return err
	}
	ended := make(chan error, 1)
	if !asked.PostCopy {
		go func() { ended <- runGuest(asked, &syscall.SysProcAttr{}) }()
	}
	expired := make(chan error, 1)
	for isStopping := false; ; {
		select {
		case err := <-ended:
			return err
		case err := <-expired:
			return err
		case received := <-signals:
			if received == guestEnded {
				return nil
			}
			if !isStopping {
				isStopping = true
				go func() { expired <- shutDown(asked.VMI.Spec.TerminationGracePeriodSeconds) }()
			}
		}
	}
}

// startGuest runs QEMU in the namespaces of a launcher for its first process. Root of the node calls it, because QEMU 7.2 needs
// a capability for post-copy unless vm.unprivileged_userfaultfd is set, which belongs to the whole machine.
func startGuest() error {
	asked, err := readRequest(request)
	if err != nil {
		return err
	}
	err = runGuest(asked, &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: qemuUser, Gid: qemuUser},
		AmbientCaps: []uintptr{unix.CAP_SYS_PTRACE},
	})
	return errors.Join(err, syscall.Kill(1, guestEnded))
}

func runGuest(asked *guestRequest, attributes *syscall.SysProcAttr) error {
	args, err := qemuArgs(asked)
	if err != nil {
		return err
	}
	guest := exec.Command("/usr/bin/qemu-system-x86_64", args...)
	guest.Stdout, guest.Stderr, guest.SysProcAttr = os.Stdout, os.Stderr, attributes
	return guest.Run()
}

func waitRequest(signals <-chan os.Signal) (*guestRequest, error) {
	for {
		asked, err := readRequest(request)
		if !errors.Is(err, fs.ErrNotExist) {
			return asked, err
		}
		select {
		case <-signals:
			return nil, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func readRequest(file string) (*guestRequest, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	asked := &guestRequest{}
	return asked, json.Unmarshal(text, asked)
}

// qemuArgs describes a machine like those of KubeVirt, but with emulated processors, and a kernel instead of a disk.
func qemuArgs(asked *guestRequest) ([]string, error) {
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none",
		"-machine", "q35,accel=tcg", "-cpu", "max", "-m", "160",
		"-L", "/usr/share/qemu", "-L", "/usr/share/seabios",
		"-kernel", "/guest/vmlinuz", "-initrd", "/guest/initrd", "-append", "console=ttyS0 quiet panic=-1", "-no-reboot",
		"-serial", "file:" + private + "console",
		"-qmp", "unix:" + private + "qmp,server=on,wait=off",
		"-device", "virtio-serial-pci",
		"-chardev", "socket,id=agent,server=on,wait=off,path=" + private + "agent",
		"-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
	}
	interfaces, err := domainInterfaces(&asked.VMI)
	if err != nil {
		return nil, err
	}
	for i, iface := range interfaces {
		args = append(args,
			"-netdev", fmt.Sprintf("tap,id=net%d,ifname=%s,script=no,downscript=no", i, iface.Target.Device),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=net%d,mac=%s,romfile=", i, iface.MAC.MAC),
		)
	}
	disk, err := cloudInitDisk(&asked.VMI)
	if err != nil {
		return nil, err
	}
	if disk != "" {
		args = append(args, "-drive", "if=virtio,format=raw,readonly=on,file="+disk)
	}
	if asked.Incoming {
		args = append(args, "-incoming", "unix:"+private+"in")
	}
	return args, nil
}

// cloudInitDisk writes the disk with network data, by the code of virt-launcher. It returns an empty path without such a volume.
func cloudInitDisk(vmi *v1.VirtualMachineInstance) (string, error) {
	data, err := cloudinit.ReadCloudInitVolumeDataSource(vmi, config.SecretSourceDir)
	if err != nil || data == nil {
		return "", err
	}
	if err := cloudinit.SetLocalDirectory("/var/run/kubevirt-ephemeral-disks/cloud-init-data"); err != nil {
		return "", err
	}
	if err := cloudinit.GenerateLocalData(vmi, "", data); err != nil {
		return "", err
	}
	return cloudinit.GetIsoFilePath(data.DataSource, vmi.Name, vmi.Namespace), nil
}
