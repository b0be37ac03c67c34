package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// The agent has the same limit. The files are in memory: this many take about 20 MiB.
const maxPendingDeletes = 4096

// Prefix of files that are being written.
const temporaryPrefix = ".note-"

// storePendingDelete atomically writes the file of a DEL that the agent has to carry out later. If there are too many,
// it writes none, and the agent releases the addresses after the pod is deleted.
func storePendingDelete(asked request, folder string) error {
	container, name := asked.Env["CNI_CONTAINERID"], asked.Env["CNI_IFNAME"]
	if container == "" || name == "" {
		return errors.New("CNI_CONTAINERID or CNI_IFNAME is absent")
	}
	err := os.MkdirAll(folder, 0o700)
	files, listErr := os.ReadDir(folder)
	if err = errors.Join(err, listErr); err != nil {
		return err
	}
	if len(files) >= maxPendingDeletes {
		os.Stderr.WriteString("holdfast: too many pending deletes in " + folder + "\n")
		return nil
	}
	pending := request{Env: map[string]string{"CNI_COMMAND": "DEL", "CNI_CONTAINERID": container, "CNI_IFNAME": name}}
	return replaceFile(folder, fileName(container, name), encode(pending))
}

// replaceFile writes a file in one step, so that a full disk leaves none that is cut off.
func replaceFile(folder, name string, content []byte) error {
	file, err := os.CreateTemp(folder, temporaryPrefix+"*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(folder, name))
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}

// fileName returns the file name for an interface of a container; the agent has the same function. Other characters are hashed.
func fileName(container, name string) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	isPlain := strings.Trim(container, letters) == "" && strings.Trim(name, letters+"._-") == ""
	if isPlain && len(container)+len(name) <= 160 {
		return container + "-" + name + ".json"
	}
	sum := sha256.Sum256([]byte(container + "/" + name))
	return hex.EncodeToString(sum[:16]) + ".json"
}
