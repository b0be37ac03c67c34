// Command dockerfile converts a Dockerfile as BuildKit does, but without its daemon, and prints the result as JSON.
// The result has what BuildKit's linter finds and the files that .dockerignore leaves in the build context.
// It also has the steps of each stage, and the config of the image for each platform.
// The folder of the Dockerfile is the build context.
//
//	dockerfile FILE PLATFORM[,PLATFORM]… [NAME=VALUE]…
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/platforms"
	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerui"
	"github.com/moby/patternmatcher/ignorefile"
	digest "github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/tonistiigi/fsutil"
)

type warning struct {
	Rule    string `json:"rule"`
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// step is a COPY, a RUN or a WORKDIR.
type step struct {
	Kind    string   `json:"kind"`
	From    string   `json:"from,omitempty"`
	Sources []string `json:"sources,omitempty"`
	Target  string   `json:"target,omitempty"`
	Command string   `json:"command,omitempty"`
}

type stage struct {
	Name  string `json:"name"`
	Base  string `json:"base"`
	Steps []step `json:"steps"`
}

// bases answers for base images, which have an empty config here.
type bases struct{}

func (bases) ResolveImageConfig(_ context.Context, ref string, opt sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	var image ocispecs.Image
	if platform := opt.ImageOpt.Platform; platform != nil {
		image.Platform = *platform
	}
	config, err := json.Marshal(image)
	return ref, digest.FromBytes(config), config, err
}

// contextOf returns the files that a client would send to BuildKit.
func contextOf(folder string) ([]string, error) {
	ignore, err := os.Open(filepath.Join(folder, ".dockerignore"))
	if err != nil {
		return nil, err
	}
	defer ignore.Close()
	patterns, err := ignorefile.ReadAll(ignore)
	if err != nil {
		return nil, err
	}
	files := []string{}
	options := &fsutil.FilterOpt{ExcludePatterns: patterns}
	err = fsutil.Walk(context.Background(), folder, options, func(path string, info fs.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

func stagesOf(file []byte) ([]stage, error) {
	parsed, err := parser.Parse(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	found, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, err
	}
	stages := make([]stage, len(found))
	for i, each := range found {
		stages[i] = stage{Name: each.Name, Base: each.BaseName, Steps: []step{}}
		for _, command := range each.Commands {
			switch c := command.(type) {
			case *instructions.CopyCommand:
				stages[i].Steps = append(stages[i].Steps, step{Kind: "copy", From: c.From, Sources: c.SourcePaths, Target: c.DestPath})
			case *instructions.RunCommand:
				stages[i].Steps = append(stages[i].Steps, step{Kind: "run", Command: strings.Join(c.CmdLine, " ")})
			case *instructions.WorkdirCommand:
				stages[i].Steps = append(stages[i].Steps, step{Kind: "workdir", Target: c.Path})
			}
		}
	}
	return stages, nil
}

func convert(path string, names []string, args map[string]string) (any, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	stages, err := stagesOf(file)
	if err != nil {
		return nil, err
	}
	files, err := contextOf(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	warnings := []warning{}
	images := map[string]ocispecs.ImageConfig{}
	for _, name := range names {
		platform, err := platforms.Parse(name)
		if err != nil {
			return nil, err
		}
		options := dockerfile2llb.ConvertOpt{
			Config:         dockerui.Config{BuildArgs: args, BuildPlatforms: []ocispecs.Platform{platforms.DefaultSpec()}},
			TargetPlatform: &platform,
			MetaResolver:   bases{},
			Warn: func(rule, _, _, message string, at []parser.Range) {
				found := warning{Rule: rule, Message: message}
				if len(at) > 0 {
					found.Line = at[0].Start.Line
				}
				warnings = append(warnings, found)
			},
		}
		state, image, _, _, err := dockerfile2llb.Dockerfile2LLB(context.Background(), file, options)
		// Where the Dockerfile asks for it, a warning is an error too.
		if err != nil && len(warnings) == 0 {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err == nil {
			if _, err := state.Marshal(context.Background(), llb.Platform(platform)); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			images[name] = ocispecs.ImageConfig{
				User: image.Config.User, Entrypoint: image.Config.Entrypoint, Cmd: image.Config.Cmd,
				WorkingDir: image.Config.WorkingDir, Labels: image.Config.Labels, Env: image.Config.Env,
			}
		}
	}
	return map[string]any{"warnings": warnings, "context": files, "stages": stages, "images": images}, nil
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: dockerfile FILE PLATFORM[,PLATFORM]… [NAME=VALUE]…")
		os.Exit(2)
	}
	args := map[string]string{}
	for _, each := range os.Args[3:] {
		name, value, _ := strings.Cut(each, "=")
		args[name] = value
	}
	result, err := convert(os.Args[1], strings.Split(os.Args[2], ","), args)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
