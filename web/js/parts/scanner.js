// SPDX-License-Identifier: Apache-2.0
// A label read by the camera, where the browser knows bar codes (BarcodeDetector); else one types.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";

const kLookMs = 250;
const detector = () => /** @type {any} */ (globalThis).BarcodeDetector;

/** Also a phone's browser shows its camera to pages of https alone. */
export const canScan = () => !!detector() && !!navigator.mediaDevices?.getUserMedia;

/** @param {{onCode: (text: string) => void}} p */
export function Scanner({ onCode }) {
  const picture = useRef(/** @type {HTMLVideoElement | null} */ (null));
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let ended = false;
    /** @type {MediaStream | null} */
    let stream = null;
    /** @type {ReturnType<typeof setTimeout> | 0} */
    let timer = 0;
    const reads = new (detector())();
    const look = async () => {
      const codes = await reads.detect(picture.current).catch(() => []); // no picture yet
      if (ended) return;
      const text = codes.map((/** @type {any} */ code) => code.rawValue.trim()).find(Boolean);
      if (text) onCode(text);
      else timer = setTimeout(look, kLookMs);
    };
    navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } }).then((given) => {
      stream = given;
      if (ended || !picture.current) return given.getTracks().forEach((track) => track.stop());
      picture.current.srcObject = given;
      return picture.current.play().then(look);
    }).catch((error) => setProblem(`The camera cannot be used (${error.name || error}). Type what the label says.`));
    return () => {
      ended = true;
      if (timer) clearTimeout(timer);
      stream?.getTracks().forEach((track) => track.stop());
    };
  }, []);
  return problem ? html`<p role="status">${problem}</p>` : html`<video class="scanner" ref=${picture} muted playsinline aria-label="What the camera sees"></video>`;
}
