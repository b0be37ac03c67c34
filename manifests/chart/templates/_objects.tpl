{{/*
The shipped objects, as kustomize renders them: the parts of files/base and the components that the values enable. Their patches are files that
"holdfast.patch" knows, operations of "holdfast.add", or delete what "holdfast.delete" matches. Templates return text, so these functions write their results into the dictionary that they get.
*/}}

{{/* The text of a shipped file, with the namespaces of this release. */}}
{{- define "holdfast.file" -}}
{{- $text := required (printf "the chart lacks %s" .path) (.root.Files.Get .path) -}}
{{- /* The agents' placeholder, because the namespace of the release may be called holdfast-agents. */ -}}
{{- $text | replace "holdfast-agents" "{agents}" | replace "holdfast-system" .root.Release.Namespace | replace "{agents}" .root.Values.agent.namespace -}}
{{- end -}}

{{/* Sets .result to the objects of the file .path. */}}
{{- define "holdfast.parse" -}}
{{- $objects := list -}}
{{- range regexSplit "(?m)^---$" (include "holdfast.file" .) -1 -}}
  {{- $object := fromYaml . -}}
  {{- if hasKey $object "Error" }}{{ fail (printf "%s: %s" $.path $object.Error) }}{{ end -}}
  {{- if $object }}{{ $objects = append $objects $object }}{{ end -}}
{{- end -}}
{{- $_ := set . "result" $objects -}}
{{- end -}}

{{/* Adds the resources of the kustomization in the folder .path to .objects, and applies its components and its patches. */}}
{{- define "holdfast.kustomization" -}}
{{- $at := dict "root" .root "path" (printf "%s/kustomization.yaml" .path) -}}
{{- template "holdfast.parse" $at -}}
{{- $kustomization := first $at.result -}}
{{- range default list $kustomization.resources -}}
  {{- $file := dict "root" $.root "path" (printf "%s/%s" $.path .) -}}
  {{- template "holdfast.parse" $file -}}
  {{- $_ := set $ "objects" (concat $.objects $file.result) -}}
{{- end -}}
{{- range default list $kustomization.components -}}
  {{- $component := dict "root" $.root "objects" $.objects "path" (clean (printf "%s/%s" $.path .)) -}}
  {{- template "holdfast.kustomization" $component -}}
  {{- $_ := set $ "objects" $component.objects -}}
{{- end -}}
{{- range default list $kustomization.patches -}}
  {{- $target := .target -}}
  {{- if .path -}}
    {{- $file := dict "root" $.root "path" (printf "%s/%s" $.path .path) -}}
    {{- template "holdfast.parse" $file -}}
    {{- range $file.result }}{{ template "holdfast.patch" dict "in" $ "patch" . "target" $target }}{{ end -}}
  {{- else if contains "$patch: delete" .patch -}}
    {{- template "holdfast.delete" dict "in" $ "target" $target -}}
  {{- else if hasPrefix "{" .patch -}}
    {{- template "holdfast.patch" dict "in" $ "patch" (fromYaml .patch) "target" $target -}}
  {{- else -}}
    {{- template "holdfast.add" dict "in" $ "operations" (fromYamlArray .patch) "target" $target -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/*
Applies one strategic merge patch, to the object that it names or to those whose kind and name match the regular expressions of .target. A patch of an
object that another component has deleted does nothing.
*/}}
{{- define "holdfast.patch" -}}
{{- $target := default (dict "kind" .patch.kind "name" .patch.metadata.name) .target -}}
{{- range .in.objects -}}
  {{- if regexMatch (printf "^(%s) (%s)$" $target.kind $target.name) (printf "%s %s" .kind .metadata.name) -}}
    {{- $own := dict "kind" .kind "metadata" (dict "name" .metadata.name) -}}
    {{- template "holdfast.merge" dict "into" . "from" (merge $own (deepCopy $.patch)) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Carries out the operations "add" of a JSON patch on the objects whose kind and name match the regular expressions of .target. */}}
{{- define "holdfast.add" -}}
{{- $target := printf "^(%s) (%s)$" .target.kind .target.name -}}
{{- range $object := .in.objects -}}
  {{- if regexMatch $target (printf "%s %s" .kind .metadata.name) -}}
    {{- range $.operations -}}
      {{- $fields := splitList "/" (trimPrefix "/" .path) -}}
      {{- $at := $object -}}
      {{- range initial $fields }}{{ if kindIs "slice" $at }}{{ $at = index $at (int .) }}{{ else }}{{ $at = get $at . }}{{ end }}{{ end -}}
      {{- $_ := set $at (last $fields) (deepCopy .value) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Deletes the objects whose kind and name match the regular expressions of .target. */}}
{{- define "holdfast.delete" -}}
{{- $kept := list -}}
{{- $target := printf "^(%s) (%s)$" (default ".*" .target.kind) .target.name -}}
{{- range .in.objects -}}
  {{- if not (regexMatch $target (printf "%s %s" .kind .metadata.name)) }}{{ $kept = append $kept . }}{{ end -}}
{{- end -}}
{{- $_ := set .in "objects" $kept -}}
{{- end -}}

{{/* Merges .from into .into as a strategic merge patch: maps by key, and lists of named items by the key of an item. Other lists are replaced. */}}
{{- define "holdfast.merge" -}}
{{- $keys := dict "containers" "name" "initContainers" "name" "volumes" "name" "env" "name" "volumeMounts" "mountPath" "ports" "port" "webhooks" "name" -}}
{{- range $field, $value := .from -}}
  {{- $old := get $.into $field -}}
  {{- $key := get $keys $field -}}
  {{- if and (kindIs "map" $value) (kindIs "map" $old) -}}
    {{- template "holdfast.merge" dict "into" $old "from" $value -}}
  {{- else if and $key (kindIs "slice" $old) -}}
    {{- $items := $old -}}
    {{- range $item := $value -}}
      {{- $found := dict -}}
      {{- range $old }}{{ if eq (toString (get . $key)) (toString (get $item $key)) }}{{ $found = . }}{{ end }}{{ end -}}
      {{- if $found }}{{ template "holdfast.merge" dict "into" $found "from" $item }}{{ else }}{{ $items = append $items $item }}{{ end -}}
    {{- end -}}
    {{- $_ := set $.into $field $items -}}
  {{- else -}}
    {{- $_ := set $.into $field $value -}}
  {{- end -}}
{{- end -}}
{{- end -}}
