import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ImageConfig } from '../../../test/image/dockerfile.js';
import { capture } from '../../processes/processes.js';

/** A part of an image: a file or folder of this machine, a file with a text, or an empty folder with a mode. */
export type ImageFile = { readonly target: string } & (
  | { readonly source: string }
  | { readonly text: string }
  | { readonly mode: number }
);

export interface Image {
  /** As containerd lists it: with its registry and tag. */
  readonly name: string;
  readonly config: Partial<ImageConfig>;
  /** Links are followed. */
  readonly files: readonly ImageFile[];
}

/** What refers to a blob: https://github.com/opencontainers/image-spec/blob/v1.1.1/descriptor.md. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const MEDIA_TYPE = 'application/vnd.oci.image';
export const MANIFEST_TYPE = `${MEDIA_TYPE}.manifest.v1+json`;
/** Equal files give equal bytes, on each machine and at any time. */
const TAR = [
  ...['--create', '--format=gnu', '--sort=name', '--mtime=@0', '--dereference', '--hard-dereference'],
  ...['--owner=0', '--group=0', '--numeric-owner', '--mode=a+rX'],
];

/**
 * Makes the blobs of an image without a container engine: manifest, config, and one layer that is not compressed. Needs GNU tar.
 * @param blobs a folder, in which the files have the hexadecimal digits of their digests as names
 * @returns its manifest
 */
export async function storeImage(blobs: string, { config, files }: Image): Promise<Descriptor> {
  await mkdir(blobs, { recursive: true });
  const scratch = await mkdtemp(join(blobs, '.new-'));
  try {
    const root = join(scratch, 'root');
    await mkdir(root);
    for (const file of files) await addTo(root, file);
    const layer = join(scratch, 'layer.tar');
    await packFolder(root, layer);
    const packed = await store(layer, blobs, `${MEDIA_TYPE}.layer.v1.tar`);
    const put = async (type: string, content: object) => {
      const file = join(scratch, type);
      await writeFile(file, JSON.stringify(content));
      return store(file, blobs, `${MEDIA_TYPE}.${type}.v1+json`);
    };
    const configBlob = await put('config', {
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [packed.digest] },
    });
    return await put('manifest', { schemaVersion: 2, mediaType: MANIFEST_TYPE, config: configBlob, layers: [packed] });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Adds a file to a folder that tar packs. Files of this machine become links, because tar follows them. */
async function addTo(root: string, file: ImageFile): Promise<void> {
  const path = join(root, file.target);
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  if ('source' in file) return link(resolve(file.source), path);
  if ('text' in file) return writeFile(path, file.text, { mode: 0o644, flag: 'wx' });
  await mkdir(path);
  await chmod(path, file.mode);
}

async function link(source: string, path: string): Promise<void> {
  if (!(await stat(source)).isDirectory()) return symlink(source, path);
  await mkdir(path, { recursive: true, mode: 0o755 });
  for (const name of await readdir(source)) await link(join(source, name), join(path, name));
}

async function packFolder(folder: string, archive: string): Promise<void> {
  await capture('tar', [...TAR, '--file', archive, '--directory', folder, '--', ...(await readdir(folder))]);
}

/** Moves a file into a folder of blobs, under the name of its digest. */
async function store(file: string, blobs: string, mediaType: string): Promise<Descriptor> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  const digest = hash.digest('hex');
  const { size } = await stat(file);
  await rename(file, join(blobs, digest));
  return { mediaType, digest: `sha256:${digest}`, size };
}
