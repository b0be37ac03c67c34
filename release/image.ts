import { execFileSync, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReleaseSettings } from './settings.js';

const PLATFORMS = 'linux/amd64,linux/arm64';

/** References of images by the arguments of the Dockerfile that name them. */
export type BaseImages = Readonly<Record<string, string>>;

/** @returns why no image can be built here; undefined if one can */
export function missingEngine(): string | undefined {
  const isReady = (args: string[]) => spawnSync('docker', args, { stdio: 'ignore', timeout: 20_000 }).status === 0;
  if (!isReady(['info'])) return 'no container engine answers (docker info)';
  return isReady(['buildx', 'version']) ? undefined : 'docker has no buildx';
}

/** The images that a Dockerfile starts from: each is an argument whose name ends with `_IMAGE`. */
export function baseImagesOf(dockerfile: string): BaseImages {
  return Object.fromEntries(
    [...dockerfile.matchAll(/^ARG (\w+_IMAGE)=(\S+)$/gm)].map(([, argument = '', image = '']) => [argument, image]),
  );
}

/** Replaces the tag of each base image by its digest, so that all platforms start from the same images and the release can name them. */
export async function resolveBases(tree: string): Promise<BaseImages> {
  const tagged = Object.entries(baseImagesOf(await readFile(join(tree, 'Dockerfile'), 'utf8')));
  return Object.fromEntries(
    tagged.map(([argument, image]) => {
      const inspect = ['buildx', 'imagetools', 'inspect', image, '--format', '{{.Manifest.Digest}}'];
      return [argument, `${image}@${execFileSync('docker', inspect, { encoding: 'utf8' }).trim()}`];
    }),
  );
}

/** What an image is made of. */
interface ImageSource {
  readonly tree: string;
  readonly commit: string;
  /** Of all files, in seconds since 1970. */
  readonly time: number;
  readonly bases: BaseImages;
}

/** The arguments with which docker builds the image for all platforms into an OCI archive. */
export function imageBuild(
  { tree, commit, time, bases }: ImageSource,
  { imageName, version }: ReleaseSettings,
  archive: string,
): string[] {
  const values = {
    ...bases,
    VERSION: version,
    REVISION: commit,
    CREATED: new Date(time * 1000).toISOString().replace('.000', ''),
    SOURCE_DATE_EPOCH: String(time),
  };
  return [
    ...['buildx', 'build', `--platform=${PLATFORMS}`, `--tag=${imageName}:${version}`],
    ...Object.entries(values).map(([name, value]) => `--build-arg=${name}=${value}`),
    // BuildKit's attestations contain the time of day; the workflow attests the finished image
    '--provenance=false',
    `--output=type=oci,dest=${archive},rewrite-timestamp=true`,
    tree,
  ];
}

export function imageFile(version: string): string {
  return `holdfast-${version}-image.tar`;
}
