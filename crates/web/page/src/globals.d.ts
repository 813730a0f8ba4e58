/** True in the development server and in `vite build --mode fixture`; false in the product, where the code behind it is left out. */
declare const __FIXTURE__: boolean;
